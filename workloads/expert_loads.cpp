#include "workloads/expert_loads.hpp"

#include <algorithm>
#include <numeric>

#include "workloads/operators/shard.hpp"
#include "workloads/routing.hpp"

namespace rehearse::workloads {
namespace {

// A token chooses an expert once: no expert can get more than every token. What is beyond goes to the others in proportion.
void limit(std::vector<double>& shares, double most) {
  std::vector<bool> full(shares.size(), false);
  while (true) {
    double beyond = 0, open = 0;
    for (std::size_t e = 0; e < shares.size(); ++e) {
      if (!full[e] && shares[e] > most) {
        beyond += shares[e] - most;
        shares[e] = most;
        full[e] = true;
      }
      if (!full[e]) open += shares[e];
    }
    if (beyond <= 0 || open <= 0) return;
    for (std::size_t e = 0; e < shares.size(); ++e) {
      if (!full[e]) shares[e] *= 1 + beyond / open;
    }
  }
}

}  // namespace

ExpertLoads::ExpertLoads(const Workload& workload, int step)
    : workload_(workload),
      step_(step),
      per_rank_(workload.model.moe->experts / workload.parallel.ep),
      even_(RoutingRegistry::get(workload.experts.routing).even()) {
  own_pairs_ = static_cast<double>(shard_of(workload).spread_tokens) * workload.model.moe->top_k;
}

const LayerLoad& ExpertLoads::at(int layer, int microbatch) const {
  const std::pair key = even_ ? std::pair(0, 0) : std::pair(layer, microbatch);
  const auto it = loads_.find(key);
  return it != loads_.end() ? it->second : loads_.emplace(key, load(key.first, key.second)).first->second;
}

LayerLoad ExpertLoads::load(int layer, int microbatch) const {
  const MoeSpec& moe = *workload_.model.moe;
  LayerLoad load;
  load.tokens = RoutingRegistry::get(workload_.experts.routing).shares(workload_.experts, moe.experts, {step_, layer, microbatch});
  limit(load.tokens, 1.0 / moe.top_k);
  const double pairs = own_pairs_ * workload_.parallel.ep * workload_.parallel.etp;
  const double capacity = workload_.experts.capacity_factor > 0 ? workload_.experts.capacity_factor * pairs / moe.experts : pairs;
  for (double& tokens : load.tokens) {
    tokens *= pairs;
    load.dropped += std::max(0.0, tokens - capacity);
    tokens = std::min(tokens, capacity);
  }
  return load;
}

double ExpertLoads::received(int rank, int layer, int microbatch) const {
  const std::vector<double>& tokens = at(layer, microbatch).tokens;
  const auto first = tokens.begin() + static_cast<std::ptrdiff_t>(rank) * per_rank_;
  return std::accumulate(first, first + per_rank_, 0.0);
}

}  // namespace rehearse::workloads
