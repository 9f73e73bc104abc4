#include <fmt/format.h>

#include "sim/job/checks.hpp"
#include "sim/job/refusal.hpp"
#include "workloads/routing.hpp"

namespace rehearse::sim {
namespace {

using config::Node;
using workloads::Workload;

void check_rows(const Node& node, const Workload& workload) {
  for (const workloads::RoutedTokens& row : workload.experts.counts) {
    const auto outside = [&](const char* what, int value, int most) {
      if (value >= most) refuse(node, "moe.routing", fmt::format("the counts name {} {}; there are {}, from 0", what, value, most));
    };
    outside("layer", row.layer, workload.model.layers + workload.model.mtp);
    outside("expert", row.expert, workload.model.moe->experts);
    outside("micro-batch", row.microbatch, workload.microbatches());
    outside("sender", row.sender, workload.parallel.ep);
    if (!workload.model.has_experts(row.layer)) {
      refuse(node, "moe.routing", fmt::format("the counts name layer {}, which has no experts", row.layer));
    }
  }
}

}  // namespace

void check_counts(const Node& node, const Workload& workload, int steps) {
  if (workload.experts.routing != "counts") return;
  check_rows(node, workload);
  const workloads::Routing& routing = workloads::RoutingRegistry::get("counts");
  const bool own = workload.experts.senders == workloads::Senders::own;
  const auto check_place = [&](const workloads::RoutingPlace& place) {
    try {
      static_cast<void>(routing.shares(workload.experts, workload.model.moe->experts, place));
    } catch (const config::InputError& error) {
      refuse(node, "moe.routing", error.message(), place.step > 0 ? fmt::format("simulation: {{steps: {}}}", place.step) : "");
    }
  };
  for (int step = 0; step < steps; ++step) {
    for (int layer = 0; layer < workload.model.layers + workload.model.mtp; ++layer) {
      for (int i = 0; workload.model.has_experts(layer) && i < workload.microbatches(); ++i) {
        for (int sender = own ? 0 : -1; sender < (own ? workload.parallel.ep : 0); ++sender) check_place({step, layer, i, sender});
      }
    }
  }
}

}  // namespace rehearse::sim
