// Batches of all devices joined on the server (`server.mode: batched`, parallel split learning): every batch waits for everybody, the
// uplink, the server and the downlink are used one after another, each shared out for itself (docs/federated.md, "Batched").
#pragma once

#include "sim/federated/plan.hpp"

namespace rehearse::federated {

// One transfer of all devices over one medium, which begins when they are ready and ends for all at once.
struct JointTransfer {
  double seconds = 0;         // from the first device's readiness to the end
  std::vector<double> share;  // [device] of the medium
};
// own_s: what a device does before it sends, with the latency; medium_s: its transfer with the whole medium. Dedicated links take no share.
[[nodiscard]] JointTransfer joint_transfer(std::span<const double> own_s, std::span<const double> medium_s,
                                           const std::vector<bool>& dedicated);

struct BatchedBatch {
  std::vector<double> part;  // [device] of its samples of the round; 0: it has no such batch
  std::int64_t times = 1;    // so many batches in a row are alike
  JointTransfer up, down;
  double server_s = 0;
  double broadcast_s = 0;  // before `down`, which is then the way back through the devices alone
};

struct BatchedRound {
  JointTransfer model_down, model_up;
  std::vector<BatchedBatch> batches;
  double round_s = 0;  // without aggregation
};
[[nodiscard]] BatchedRound batched_round(const Job& job, const CutChoice& cuts);

// The cut that serves all best, or the one that the job names. Throws config::InputError where no cut is available to all.
[[nodiscard]] Plan batched_plan(const Job& job);
[[nodiscard]] Plan batched_plan(const Job& job, std::uint16_t cut);

}  // namespace rehearse::federated
