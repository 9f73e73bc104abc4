// Who holds which part of a request's cache, and so who sends what to whom when it moves to an instance with another plan.
#pragma once

#include <vector>

#include "workloads/serving/instance_plan.hpp"

namespace rehearse::workloads {

// From a rank of the sending instance to one of the receiving instance, both within one attention replica: stage * tp + tensor rank.
struct KvPair {
  int from = 0, to = 0;
  double bytes_per_token = 0;           // in the sender's number format
  double state_bytes = 0;               // of a sequence, whatever its length: of what layers have in the place of attention
  int first_layer = 0, last_layer = 0;  // that it moves: [first, last)
};

// Every rank of the receiver gets its own share with its own copies: head range [r*k/T, (r+1)*k/T), a head held by several where T > k. It
// fetches each head from one of the senders that hold it, copies taken in turn. With latent attention every receiver gets the whole state.
// Of states of mixers every rank gets those of its heads from whoever has them. A layer comes from the stage that holds it. Sorted by from
// and to; their sum is what leaves the sender.
[[nodiscard]] std::vector<KvPair> kv_pairs(const InstancePlan& sender, const InstancePlan& receiver);

// Whether both cut the heads alike, so that each rank's part goes to one rank as it is.
[[nodiscard]] bool cut_alike(const InstancePlan& sender, const InstancePlan& receiver);

}  // namespace rehearse::workloads
