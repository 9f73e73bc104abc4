// A request on its way through a deployment. Every instant of it belongs to one stage, so that the stages add up to its end-to-end time.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "workloads/serving/request.hpp"

namespace rehearse::sim {

using RequestId = std::uint32_t;

enum class Stage : std::uint8_t {
  queued,         // at the instance that computes its prompt
  prefilling,     // its prompt is being computed
  waiting,        // its cache stays where it was computed: no room on the other side
  aligning,       // of what is behind it, the time of kernels that make it fit the other side
  transferring,   // its cache is on the way
  decode_queued,  // its cache is there, the pass under way is not over
  decoding,
  done,
  rejected,  // cannot be served: its cache is larger than an instance's
  lost,      // given up after too many hand-overs that did not end in time
};
inline constexpr std::size_t timed_stages = 7;  // those before done
[[nodiscard]] std::string_view name_of(Stage stage);

struct StageSpan {
  Stage stage = Stage::queued;
  double start_s = 0, end_s = 0;
};

struct RequestState {
  workloads::Lengths tokens;
  double arrival_s = 0, first_s = -1, last_s = -1;  // of the first and the last token, as the client sees them; -1: not yet
  std::array<double, timed_stages> spent_s{};
  double since_s = 0;  // when the stage began
  Stage stage = Stage::queued;
  int generated = 0;  // tokens of the answer so far
  int prompt = 0;     // tokens to compute before the next one: of the prompt, and of the answer so far where its cache was lost
  int preemptions = 0;
  int retries = 0;  // times that something failed which worked for it or held its cache
  // Of its prompt, tokens in the cache of the instance where it queues or is computed; in that of the instance that is to decode it; and
  // those not computed for that, of all times that it was begun.
  int found = 0, there = 0;
  std::int64_t reused = 0;
  std::int64_t redone = 0;  // tokens computed again for that
  double transfer_bytes = 0;
  std::vector<StageSpan>* history = nullptr;  // where somebody follows it

  void enter(Stage next, double now_s) {
    if (history != nullptr && now_s > since_s) history->push_back({stage, since_s, now_s});
    if (static_cast<std::size_t>(stage) < timed_stages) spent_s[static_cast<std::size_t>(stage)] += now_s - since_s;
    stage = next;
    since_s = now_s;
  }
  [[nodiscard]] double ttft_s() const { return first_s - arrival_s; }
  [[nodiscard]] double e2e_s() const { return last_s - arrival_s; }
  [[nodiscard]] double tpot_s() const { return tokens.output > 1 ? (last_s - first_s) / (tokens.output - 1) : 0; }
};

}  // namespace rehearse::sim
