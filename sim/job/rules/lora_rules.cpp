#include <fmt/format.h>

#include <algorithm>

#include "sim/job/refusal.hpp"
#include "sim/job/rules/rule.hpp"
#include "workloads/names.hpp"

namespace rehearse::sim {
namespace {

using workloads::LoraTarget;
using workloads::Workload;

const Rule adapters_of_plain_models{"lora",
                                    [](const Workload& w, const System&) {
                                      return !w.lora.on() || (w.model.plain_layers() && !w.model.moe && !w.model.mla && w.model.mtp == 0);
                                    },
                                    [](const Workload&, const System&) {
                                      return Refusal{
                                          "lora is not simulated by this version for models with experts, latent attention, multi-token "
                                          "prediction, or layers that are not attention and an MLP"};
                                    }};

const Rule adapters_by_adam{"optimizer.kind", [](const Workload& w, const System&) { return !w.lora.on() || !w.optimizer.muon(); },
                            [](const Workload&, const System&) {
                              return Refusal{"optimizer.kind: muon is not simulated by this version for adapters", "optimizer.kind: adam"};
                            }};

const Rule rank_in_width{
    "lora.rank", [](const Workload& w, const System&) { return w.lora.rank <= w.model.hidden; },
    [](const Workload& w, const System&) {
      return Refusal{fmt::format("rank ({}) is more than the hidden size of model '{}' ({})", w.lora.rank, w.model.name, w.model.hidden)};
    }};

const Rule rank_over_tp{"lora.rank", [](const Workload& w, const System&) { return w.lora.rank % w.parallel.tp == 0; },
                        [](const Workload& w, const System&) {
                          return Refusal{fmt::format("rank ({}) is not a multiple of tp ({})", w.lora.rank, w.parallel.tp),
                                         fmt::format("rank: {} would work", multiples_near(w.lora.rank, w.parallel.tp))};
                        }};

const Rule adapters_in_floats{"lora.weights",
                              [](const Workload& w, const System&) { return !w.lora.weights || bytes_of(*w.lora.weights) >= 2; },
                              [](const Workload&, const System&) {
                                return Refusal{"adapters are trained in 16 or 32 bits", "lora.weights: bf16"};
                              }};

const Rule base_for_wide_products{
    "lora.base", [](const Workload& w, const System&) { return !w.lora.nf4 || bytes_of(w.precision.compute) >= 2; },
    [](const Workload& w, const System&) {
      return Refusal{fmt::format("lora.base: nf4 is dequantised to 16 bits, and the products are in {}", name_of(w.precision.compute)),
                     "precision: bf16"};
    }};

struct Fused {
  LoraTarget whole, part;
};
constexpr Fused fused_layers[] = {{LoraTarget::linear_qkv, LoraTarget::linear_q},
                                  {LoraTarget::linear_qkv, LoraTarget::linear_k},
                                  {LoraTarget::linear_qkv, LoraTarget::linear_v},
                                  {LoraTarget::linear_fc1, LoraTarget::linear_fc1_gate},
                                  {LoraTarget::linear_fc1, LoraTarget::linear_fc1_up}};

const Fused* both_targeted(const Workload& w) {
  const auto* found =
      std::ranges::find_if(fused_layers, [&](const Fused& each) { return w.lora.adapts(each.whole) && w.lora.adapts(each.part); });
  return found == std::end(fused_layers) ? nullptr : found;
}

const Rule one_adapter_each{"lora.targets", [](const Workload& w, const System&) { return both_targeted(w) == nullptr; },
                            [](const Workload& w, const System&) {
                              const Fused& both = *both_targeted(w);
                              return Refusal{fmt::format("{} is a part of {}, which has an adapter of its own",
                                                         workloads::lora_targets.of(both.part), workloads::lora_targets.of(both.whole)),
                                             "one of the two"};
                            }};

bool has_target(const workloads::Model& model, LoraTarget target) {
  switch (target) {
    case LoraTarget::linear_fc1_gate:
      return model.gated();
    case LoraTarget::linear_fc1:
    case LoraTarget::linear_fc1_up:
    case LoraTarget::linear_fc2:
      return true;
    default:
      return model.heads > 0;
  }
}

const LoraTarget* lacking_target(const Workload& w) {
  if (!w.lora.on()) return nullptr;
  const auto found = std::ranges::find_if(w.lora.targets, [&](LoraTarget target) { return !has_target(w.model, target); });
  return found == w.lora.targets.end() ? nullptr : &*found;
}

const Rule targets_of_the_model{
    "lora.targets", [](const Workload& w, const System&) { return lacking_target(w) == nullptr; },
    [](const Workload& w, const System&) {
      return Refusal{fmt::format("model '{}' has no {} to adapt", w.model.name, workloads::lora_targets.of(*lacking_target(w)))};
    },
    "lora"};

}  // namespace

std::vector<Rule> lora_rules() {
  return {adapters_of_plain_models, adapters_by_adam,       rank_in_width,    rank_over_tp,
          adapters_in_floats,       base_for_wide_products, one_adapter_each, targets_of_the_model};
}

}  // namespace rehearse::sim
