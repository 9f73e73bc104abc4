#include "sim/job/sections.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "sim/job/names.hpp"
#include "sim/job/section.hpp"
#include "workloads/collective.hpp"

namespace rehearse::sim {
namespace {

using config::Node;
using workloads::DType;

constexpr std::int64_t most_sequences = 10'000'000;  // in a global batch
constexpr std::int64_t longest_sequence = 100'000'000;
constexpr std::int64_t largest_seed = std::int64_t{1} << 53U;  // exact in JSON
constexpr int most_steps = 1000;

std::vector<std::string> split_at_dashes(const std::string& text) {
  std::vector<std::string> out{""};
  for (const char c : text) {
    if (c == '-') {
      out.emplace_back();
    } else {
      out.back() += c;
    }
  }
  return out;
}

std::vector<std::string> read_order(const Node& node) {
  const std::vector<std::string> innermost_first{"tp", "cp", "ep", "dp", "pp"};
  std::vector<std::string> order = split_at_dashes(node.as_string());
  if (!std::is_permutation(order.begin(), order.end(), innermost_first.begin(), innermost_first.end())) {
    node.fail(
        fmt::format("parallel.order must name each of {} once, not {}", fmt::join(innermost_first, ", "), config::shown(node.as_string())),
        "for example tp-cp-ep-dp-pp");
  }
  return order;
}

workloads::Recompute read_recompute(const Node& node) {
  if (!node.is_map()) return {.kind = workloads::recompute_kinds.read(node)};
  node.allow_keys({"full_layers", "modules"});
  if (const auto modules = node.find("modules")) {
    if (node.find("full_layers"))
      node.fail("recompute takes full_layers or modules, not both", "layers recomputed in full keep nothing else");
    workloads::Recompute recompute{.kind = workloads::RecomputeKind::selective};
    for (const Node& module : modules->items()) {
      const workloads::RecomputeModule read = workloads::recompute_modules.read(module);
      if (std::ranges::find(recompute.modules, read) != recompute.modules.end()) module.fail("named twice in recompute.modules");
      recompute.modules.push_back(read);
    }
    if (recompute.modules.empty())
      modules->fail("recompute.modules names nothing", "recompute: none, or for example [core_attn, layernorm]");
    return recompute;
  }
  return {.kind = workloads::RecomputeKind::full, .full_layers = static_cast<int>(node.at("full_layers").as_int(1, 10'000))};
}

void read_optimizer(const Node& job, workloads::Optimizer& optimizer) {
  const Section section(job, "optimizer", {"kind", "sharding", "shard_group", "device"});
  if (const auto kind = section.find("kind")) optimizer.kind = kind->as_string();
  if (const auto sharding = section.find("sharding")) optimizer.zero_stage = zero_stages.read(*sharding);
  optimizer.shard_group = section.integer("shard_group", 1, most_gpus, 0);
  if (const auto device = section.find("device")) optimizer.on_cpu = device->as_choice({"gpu", "cpu"}) == "cpu";
}

void read_overlap(const Node& job, workloads::Overlap& overlap) {
  const Section section(job, "overlap", {"tp", "tp_splits", "cp", "ep", "pp", "dp_gradients", "dp_parameters"});
  overlap.tp = section.flag("tp", overlap.tp);
  overlap.tp_splits = section.integer("tp_splits", 1, 1024, overlap.tp_splits);
  overlap.cp = section.flag("cp", overlap.cp);
  overlap.ep = section.flag("ep", overlap.ep);
  overlap.pp = section.flag("pp", overlap.pp);
  overlap.dp_gradients = section.flag("dp_gradients", overlap.dp_gradients);
  overlap.dp_parameters = section.flag("dp_parameters", overlap.dp_parameters);
}

// What a word for the precision as a whole stands for: narrow formats are used in the matrix products only.
workloads::Precision precision_of(DType type) {
  if (type == DType::fp32) return {type, type, type, type};
  const DType weights = type == DType::fp16 ? DType::fp16 : DType::bf16;
  return {type, weights, DType::fp32, DType::fp32};
}

}  // namespace

void read_parallel(const Node& job, workloads::Parallel& parallel) {
  const Section section(job, "parallel", {"tp", "cp", "pp", "dp", "ep", "etp", "vpp", "cp_comm", "sp", "order", "layers_per_stage"});
  parallel.tp = section.integer("tp", 1, most_gpus, 1);
  parallel.cp = section.integer("cp", 1, most_gpus, 1);
  parallel.pp = section.integer("pp", 1, most_gpus, 1);
  parallel.dp = section.integer("dp", 1, most_gpus, 0);
  parallel.ep = section.integer("ep", 1, most_gpus, 1);
  parallel.etp = section.integer("etp", 1, most_gpus, parallel.tp);
  parallel.vpp = section.integer("vpp", 1, 1000, 1);
  if (const auto comm = section.find("cp_comm")) parallel.cp_comm = workloads::context_comms.read(*comm);
  parallel.sp = section.flag("sp", false);
  if (const auto order = section.find("order")) parallel.order = read_order(*order);
  const auto split = section.find("layers_per_stage");
  if (!split) return;
  for (const Node& entry : split->items()) parallel.layers_per_stage.push_back(static_cast<int>(entry.as_int(0, 10'000)));
}

void read_batch(const Node& job, workloads::Batch& batch) {
  const Node node = job.at("batch");
  node.allow_keys({"global", "micro", "sequence"});
  batch.global = static_cast<int>(node.at("global").as_int(1, most_sequences));
  batch.micro = static_cast<int>(node.at("micro").as_int(1, most_sequences));
  batch.sequence = static_cast<int>(node.at("sequence").as_int(1, longest_sequence));
}

void read_precision(const Node& job, workloads::Precision& precision) {
  const auto node = job.find("precision");
  if (!node) return;
  if (!node->is_map()) {
    precision = precision_of(workloads::dtypes.read(*node));
    return;
  }
  node->allow_keys({"compute", "weights", "gradients", "optimizer"});
  if (const auto given = node->find("compute")) precision.compute = workloads::dtypes.read(*given);
  if (const auto given = node->find("weights")) precision.weights = workloads::dtypes.read(*given);
  if (const auto given = node->find("gradients")) precision.gradients = workloads::dtypes.read(*given);
  if (const auto given = node->find("optimizer")) precision.optimizer = workloads::dtypes.read(*given);
}

void read_optimisations(const Node& job, workloads::Workload& workload) {
  if (const auto attention = job.find("attention")) workload.attention = workloads::attentions.read(*attention);
  workload.schedule = workload.parallel.vpp > 1 ? "interleaved-1f1b" : "1f1b";
  if (const auto schedule = job.find("schedule")) workload.schedule = schedule->as_string();
  if (const auto recompute = job.find("recompute")) workload.recompute = read_recompute(*recompute);
  read_optimizer(job, workload.optimizer);
  workload.offload_activations = Section(job, "offload", {"activations"}).flag("activations", false);
  read_overlap(job, workload.overlap);
}

SimulationOptions read_simulation(const Node& job) {
  SimulationOptions options;
  const Section section(job, "simulation",
                        {"granularity", "collectives", "routing", "algorithm", "solver", "ranks", "steps", "seed", "faults", "timeout"});
  if (const auto granularity = section.find("granularity")) options.granularity = granularities.read(*granularity);
  if (const auto collectives = section.find("collectives")) options.collectives = fidelities.read(*collectives);
  if (const auto solver = section.find("solver")) options.solver = solvers.read(*solver);
  if (const auto algorithm = section.find("algorithm")) {
    std::vector<std::string> known = workloads::CollectiveRegistry::names();
    known.insert(known.begin(), "auto");
    options.algorithm = algorithm->as_choice(known);
  }
  if (const auto routing = section.find("routing")) options.routing = routings.read(*routing);
  options.all_ranks = options.routing == Routing::ecmp;
  if (const auto ranks = section.find("ranks")) {
    options.all_ranks = ranks->as_choice({"folded", "all"}) == "all";
    if (!options.all_ranks && options.routing == Routing::ecmp) {
      ranks->fail("flows that ECMP leads over one link differ from those that it does not", "leave ranks out, or write: ranks: all");
    }
  }
  options.steps = section.integer("steps", 1, most_steps, options.steps);
  if (const auto seed = section.find("seed")) options.seed = static_cast<std::uint64_t>(seed->as_int(0, largest_seed));
  return options;
}

void read_step_faults(const config::Node& node, Job& job) {
  const auto section = node.find("simulation");
  if (!section) return;
  if (const auto timeout = section->find("timeout")) {
    job.system.simulation.timeout_s = timeout->as_quantity(config::Dimension::time);
    if (job.system.simulation.timeout_s > seconds_per_day) timeout->fail("longer than a day");
  }
  const auto list = section->find("faults");
  if (!list) return;
  StepFaults& faults = job.system.simulation.faults;
  faults = read_step_faults(*list, {job.system.places(), job.system.cluster.network.spines, job.system.simulation.seed, &job.whole.faults});
  for (const SlowSpell& spell : faults.spells) {
    if (spell.slowdown < down_slowdown || spell.for_s < job.system.simulation.timeout_s) continue;
    list->fail(fmt::format("'{}' is down for longer than simulation.timeout: that is a failure", spell.text),
               "'at' says when something fails");
  }
  if (job.system.simulation.steps == 1) return;
  if (!faults.failures.empty())
    section->find("steps")->fail_at_key("nothing comes after a step in which something fails", "leave simulation.steps out");
  if (!faults.spells.empty())
    section->find("steps")->fail_at_key("what comes and goes inside a step does so in one step only", "leave simulation.steps out");
}

}  // namespace rehearse::sim
