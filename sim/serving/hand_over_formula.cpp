#include "sim/serving/hand_over_formula.hpp"

#include <cmath>

namespace rehearse::sim {

HandOverFormula::HandOverFormula(std::span<const PoolFormula> prompts, const NetworkTransfers& transfers, double tokens, double request_s,
                                 std::size_t receivers, double there)
    : receivers_(receivers) {
  const CacheFront sent{static_cast<std::int64_t>(there)}, whole{static_cast<std::int64_t>(std::ceil(tokens))};
  for (std::size_t lane = 0; lane < prompts.size() * receivers; ++lane) {
    lanes_.push_back({.exposed = exposed_hand_over(prompts[lane / receivers], transfers, tokens, request_s, lane, there),
                      .links_s = transfers.alone(sent, whole, lane).links_s,
                      .bytes = transfers.wire_bytes(tokens, lane) - transfers.wire_bytes(there, lane),
                      .busiest = transfers.busiest(tokens, lane, there)});
  }
}

MeanHandOver HandOverFormula::at(double rate_per_s, const std::vector<double>& prompts, const std::vector<double>& decodes) const {
  MeanHandOver out;
  const auto share_of = [&](std::size_t lane) { return prompts[lane / receivers_] * decodes[lane % receivers_]; };
  double others = 0;
  for (std::size_t lane = 0; lane < lanes_.size(); ++lane) {
    out.links_busy += rate_per_s * share_of(lane) * lanes_[lane].busiest.seconds;
    others += rate_per_s * share_of(lane) * lanes_[lane].busiest.of_others_s;
  }
  // Links are shared with those whose caches leave at any time, which are other senders': as long as alone, over what they leave.
  const double shared = others < 1 ? others / (1 - others) : INFINITY;
  for (std::size_t i = 0; i < lanes_.size(); ++i) {
    const Lane& lane = lanes_[i];
    const double share = share_of(i);
    out.waiting_s += share * lane.exposed.waiting_s;
    out.transfer_s += share * (lane.exposed.transfer_s + (lane.links_s > 0 ? lane.links_s * shared : 0));
    out.bytes += share * lane.bytes;
    out.aligning_s += share * lane.exposed.aligning_s;
  }
  return out;
}

}  // namespace rehearse::sim
