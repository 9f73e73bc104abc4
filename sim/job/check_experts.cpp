#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "sim/job/checks.hpp"
#include "sim/job/refusal.hpp"
#include "workloads/names.hpp"
#include "workloads/rank_grid.hpp"
#include "workloads/routing.hpp"
#include "workloads/schedule.hpp"
#include "workloads/stage_program.hpp"

namespace rehearse::sim {
namespace {

using config::Node;
using workloads::Workload;

void check_without_experts(const Node& node, const Workload& workload) {
  const std::string none = fmt::format("and model '{}' has none", workload.model.name);
  if (node.find("moe")) refuse(node, "moe", "moe is for models with experts, " + none);
  if (workload.parallel.ep > 1) refuse(node, "parallel.ep", fmt::format("ep ({}) spreads experts, {}", workload.parallel.ep, none));
}

void check_spread(const Node& node, const Workload& workload) {
  const workloads::Parallel& p = workload.parallel;
  const workloads::MoeSpec& moe = *workload.model.moe;
  if (moe.experts % p.ep != 0) {
    std::vector<int> parts;
    for (int ep = 1; ep <= moe.experts; ++ep) {
      if (moe.experts % ep == 0) parts.push_back(ep);
    }
    refuse(node, "parallel.ep", fmt::format("the model's experts ({}) are not a multiple of ep ({})", moe.experts, p.ep),
           fmt::format("ep: {}", fmt::join(parts, ", ")));
  }
  if (moe.ffn % p.etp != 0) {
    refuse(node, "parallel.etp", fmt::format("the model's moe.ffn ({}) is not a multiple of etp ({})", moe.ffn, p.etp));
  }
  if (moe.shared > 0 && std::int64_t{moe.shared} * moe.ffn % p.tp != 0) {
    refuse(node, "parallel.tp", fmt::format("the shared experts' width ({}) is not a multiple of tp ({})", moe.shared * moe.ffn, p.tp));
  }
  const std::int64_t plane = std::int64_t{p.tp} * p.cp * p.dp, part = std::int64_t{p.etp} * p.ep;
  if (plane % part != 0) {
    refuse(node, "parallel.ep",
           fmt::format("tp*cp*dp ({}*{}*{} = {}) is not a multiple of etp*ep ({}*{} = {})", p.tp, p.cp, p.dp, plane, p.etp, p.ep, part));
  }
  if (p.tp > 1 && !p.sp) {
    refuse(node, "parallel.sp", fmt::format("a model with experts needs sp with tp ({}): each rank routes its own tokens", p.tp),
           "sp: true");
  }
  if (!workloads::RankGrid(p).experts_keep_stages()) {
    refuse(node, "parallel.order",
           fmt::format("with etp*ep = {}*{} this order would put experts into other pipeline stages than their layers", p.etp, p.ep),
           "put pp last");
  }
}

void check_chunks(const Node& node, const Workload& workload) {
  if (!workload.experts.chunk_recompute) return;
  if (workloads::ScheduleRegistry::get(workload.schedule).splits_backward()) {
    refuse(node, "moe.chunk_recompute",
           fmt::format("schedule {} splits backward; chunks that are recomputed make both gradients at once", workload.schedule),
           "chunk_recompute: false, or schedule: 1f1b");
  }
}

void check_dispatch(const Node& node, const Workload& workload) {
  if (workload.experts.nodes_per_token == 0 || workload.experts.dispatcher == workloads::Dispatcher::hierarchical) return;
  refuse(
      node, "moe.nodes_per_token",
      fmt::format("dispatcher {} sends to every node that has a token's experts", workloads::dispatchers.of(workload.experts.dispatcher)),
      "dispatcher: hierarchical, or no nodes_per_token");
}

void check_overlap(const Node& node, const Workload& workload) {
  if (!workload.overlap.ep) return;
  const auto no = [&](std::string_view what, std::string_view instead) {
    refuse(node, "overlap.ep", fmt::format("ep overlap does not go with {}", what), instead);
  };
  if (!workload.model.moe) no("a model without experts", "ep: false");
  if (!workloads::overlaps_pairs(workload.schedule)) {
    no(fmt::format("schedule {}", workload.schedule), "1f1b, interleaved-1f1b or dualpipe");
  }
  if (workload.experts.chunks != 1) no("chunks, which overlap by themselves", "moe.chunks: 1");
  if (workloads::replica_sync(workload).reduce_each_microbatch) no("gradients that are sharded after every micro-batch", "sharding: zero1");
}

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

// Every step, layer and micro-batch, and sender where they are named, has tokens.
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

}  // namespace

void check_experts(const Node& node, const Workload& workload, int steps) {
  check_overlap(node, workload);
  if (!workload.model.moe) return check_without_experts(node, workload);
  check_spread(node, workload);
  check_chunks(node, workload);
  check_dispatch(node, workload);
  check_counts(node, workload, steps);
}

}  // namespace rehearse::sim
