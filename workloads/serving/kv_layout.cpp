#include "workloads/serving/kv_layout.hpp"

#include <algorithm>
#include <map>

#include "workloads/serving/cache_bytes.hpp"

namespace rehearse::workloads {
namespace {

// Layers of a stage: [first, last).
struct Layers {
  int first = 0, last = 0;
};
Layers layers_of(const InstancePlan& plan, int stage) {
  return {plan.model.layers * stage / plan.pp, plan.model.layers * (stage + 1) / plan.pp};
}

Layers shared_layers(const Layers& one, const Layers& other) { return {std::max(one.first, other.first), std::min(one.last, other.last)}; }

// Heads that a tensor rank holds.
Layers heads_of(int heads, int tp, int rank) {
  if (tp >= heads) return {rank * heads / tp, rank * heads / tp + 1};
  return {rank * heads / tp, (rank + 1) * heads / tp};
}

// Of the ranks that hold a head, the one that a receiver asks: copies in turn.
int holder(int heads, int tp, int head, int receiver) {
  if (tp <= heads) return head * tp / heads;
  const int copies = tp / heads;
  return head * copies + receiver % copies;
}

struct BytesOfPair {
  double of_token = 0, of_sequence = 0;
};
using PairBytes = std::map<std::pair<int, int>, BytesOfPair>;

void add_heads(PairBytes& pairs, const InstancePlan& sender, const InstancePlan& receiver, int from_stage, int to_stage, int layers) {
  const Model& model = sender.model;
  const double head_bytes = 2.0 * model.head_dim * bytes_of(sender.precision.kv) * layers;
  for (int rank = 0; rank < receiver.tp; ++rank) {
    const Layers heads = heads_of(model.kv_heads, receiver.tp, rank);
    for (int head = heads.first; head < heads.last; ++head) {
      const int from = holder(model.kv_heads, sender.tp, head, rank);
      pairs[{from_stage * sender.tp + from, to_stage * receiver.tp + rank}].of_token += head_bytes;
    }
  }
}

void add_states(PairBytes& pairs, const InstancePlan& sender, const InstancePlan& receiver, int from_stage, int to_stage, int layers) {
  const MlaSpec& mla = *sender.model.mla;
  const double bytes = (mla.kv_lora + mla.qk_rope) * bytes_of(sender.precision.kv) * layers;
  for (int rank = 0; rank < receiver.tp; ++rank) {
    pairs[{from_stage * sender.tp + rank % sender.tp, to_stage * receiver.tp + rank}].of_token += bytes;
  }
}

// Both cut the heads evenly, and what the convolution keeps with them.
void add_mixers(PairBytes& pairs, const InstancePlan& sender, const InstancePlan& receiver, int mixers) {
  const double bytes = state_bytes(sender).one * sender.tp * mixers;
  for (int to = 0; to < receiver.tp; ++to) {
    for (int from = to * sender.tp / receiver.tp; from * receiver.tp < (to + 1) * sender.tp; ++from) {
      const double first = std::max(static_cast<double>(to) / receiver.tp, static_cast<double>(from) / sender.tp);
      const double last = std::min((to + 1.0) / receiver.tp, (from + 1.0) / sender.tp);
      pairs[{from, to}].of_sequence += (last - first) * bytes;
    }
  }
}

}  // namespace

std::vector<KvPair> kv_pairs(const InstancePlan& sender, const InstancePlan& receiver) {
  PairBytes pairs;
  for (int from = 0; from < sender.pp; ++from) {
    for (int to = 0; to < receiver.pp; ++to) {
      const Layers shared = shared_layers(layers_of(sender, from), layers_of(receiver, to));
      if (shared.last <= shared.first) continue;
      const int layers = caching_layers(sender.model, shared.first, shared.last).attention;
      sender.model.mla ? add_states(pairs, sender, receiver, from, to, layers) : add_heads(pairs, sender, receiver, from, to, layers);
    }
  }
  if (sender.model.mixer) add_mixers(pairs, sender, receiver, caching_layers(sender.model).mixers);  // on one stage
  std::vector<KvPair> out;
  for (const auto& [ranks, bytes] : pairs) {
    const Layers from = layers_of(sender, ranks.first / sender.tp), to = layers_of(receiver, ranks.second / receiver.tp);
    out.push_back(
        {ranks.first, ranks.second, bytes.of_token, bytes.of_sequence, std::max(from.first, to.first), std::min(from.last, to.last)});
  }
  return out;
}

bool cut_alike(const InstancePlan& sender, const InstancePlan& receiver) {
  if (sender.model.mla) return true;
  return std::min(sender.tp, sender.model.kv_heads) == std::min(receiver.tp, receiver.model.kv_heads);
}

}  // namespace rehearse::workloads
