// What CUDA graphs may hold of a layer.
#include "sim/job/rules/rule.hpp"

namespace rehearse::sim {
namespace {

using workloads::Workload;

bool captures_experts(const Workload& w) {
  return w.captures(workloads::GraphScope::moe_router) || w.captures(workloads::GraphScope::moe_preprocess);
}

const Rule graphs_have_experts{
    "cuda_graphs", [](const Workload& w, const System&) { return w.model.moe || !captures_experts(w); },
    [](const Workload&, const System&) {
      return Refusal{"moe_router and moe_preprocess are parts of layers with experts, which the model has not", "cuda_graphs: [attn, mlp]"};
    }};

const Rule graphs_have_mixers{"cuda_graphs",
                              [](const Workload& w, const System&) { return w.model.mixer || !w.captures(workloads::GraphScope::mamba); },
                              [](const Workload&, const System&) {
                                return Refusal{"mamba is of layers with a mixer, which the model has not", "cuda_graphs: [attn, mlp]"};
                              }};

const Rule graphs_start_at_the_router{"cuda_graphs",
                                      [](const Workload& w, const System&) {
                                        return !w.captures(workloads::GraphScope::moe_preprocess) ||
                                               w.captures(workloads::GraphScope::moe_router);
                                      },
                                      [](const Workload&, const System&) {
                                        return Refusal{"moe_preprocess goes with moe_router", "cuda_graphs: [moe_router, moe_preprocess]"};
                                      }};

}  // namespace

std::vector<Rule> graph_rules() { return {graphs_have_experts, graphs_have_mixers, graphs_start_at_the_router}; }

}  // namespace rehearse::sim
