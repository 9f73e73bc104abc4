#include "sim/job/job.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "config/yaml_text.hpp"
#include "sim/job/checks.hpp"
#include "sim/job/job_document.hpp"
#include "sim/job/job_keys.hpp"
#include "sim/job/limits.hpp"
#include "sim/job/open_job.hpp"
#include "sim/job/override.hpp"
#include "sim/job/refusal.hpp"
#include "sim/job/simulation_keys.hpp"
#include "sim/job/whole_job_keys.hpp"
#include "topology/nic_scale.hpp"
#include "workloads/routing.hpp"
#include "workloads/stage_program.hpp"

namespace rehearse::sim {
namespace {

using config::Node;

// What overlapped pairs take the host is counted in kernels of an x86 server; Grace takes no longer for it (docs/moe.md).
workloads::PassKernels pairing_kernels(const System& system) {
  const auto counted = [&](int kernels) { return static_cast<int>(std::lround(kernels / system.gpu.host_time)); };
  const workloads::PassKernels& kernels = system.software.kernels.pairing_kernels;
  return {counted(kernels.forward), counted(kernels.backward)};
}

// Where the job leaves open what gradients are added up and reduced in: FP32, unless its stack does so in the weights' type, or leaves
// those of fp16 weights as autograd makes them.
void settle_gradients(Job& job) {
  const auto precision = job.given.find("precision");
  if (precision && precision->is_map() && precision->find("gradients")) return;
  const workloads::MemoryHabits& habits = job.system.software.memory.habits;
  workloads::Precision& types = job.workload.precision;
  const bool as_weights = habits.narrow_gradients || (habits.half_gradients && types.weights == workloads::DType::fp16);
  types.gradients = as_weights ? types.weights : workloads::DType::fp32;
}

// Where the job leaves open how products in 8 bits get their scales: as its stack does; of experts alone there is no such habit. Products
// in 4 bits are NVFP4's on NVIDIA's GPUs.
void settle_recipe(Job& job) {
  const auto precision = job.given.find("precision");
  if (precision && precision->is_map() && precision->find("recipe")) return;
  workloads::Precision& types = job.workload.precision;
  if (types.compute == workloads::DType::fp8) {
    types.recipe = job.system.software.fp8_recipe;
  } else {
    const bool nvfp4 = types.in_fp4() && !types.in_fp8() && job.system.gpu.vendor == "nvidia";
    types.recipe = nvfp4 ? workloads::Scaling::nvfp4 : workloads::Scaling::delayed;
  }
}

// What the job's stack does by habit.
void take_habits(Job& job) {
  job.workload.recompute.stops_early = job.system.software.early_stop;
  job.workload.recompute.by_product = job.system.software.selective_by_product;
  job.workload.recompute.narrow_too = job.system.software.selective_narrow;
  job.workload.optimizer.by_tensor = job.system.software.zero3_by_tensor;
  job.workload.optimizer.by_adapter = job.system.software.adapter_units;
  job.workload.optimizer.gathered_again = job.system.software.gathers_again;
  job.system.software.memory.habits.expandable_segments &= job.system.gpu.vendor == "nvidia";
  job.workload.optimizer.copies = job.system.software.copies_exchanged;
  job.workload.optimizer.flat = job.system.software.flat_parameters;
  job.workload.optimizer.joins_at_once = job.system.software.joins_at_once;
  job.workload.optimizer.root = job.system.software.root_unit;
  job.workload.optimizer.by_owner = job.system.software.broadcasts_weights;
  job.workload.optimizer.all_reduces = job.system.software.all_reduces_gradients;
  job.workload.optimizer.host_rate = job.system.software.host_update;
  job.workload.parallel.whole_messages = job.system.software.whole_messages;
  // A graph holds no kernels whose sizes the host has to know: the experts' MLP is one fused kernel there.
  workloads::KernelFusions& fusions = job.workload.fusions;
  fusions.any_order = job.system.gpu.any_order && fusions.casts_weights;
  fusions.pairing_kernels = pairing_kernels(job.system);
  if (!job.system.software.replays_graphs) return;
  fusions.gate_bias_copies = fusions.bias_copies = fusions.clamp_copies = {};
  fusions.fills_blocks = false;
}

void check(const Node& node, Job& job) {
  settle_gpus(node, job);
  workloads::Optimizer& optimizer = job.workload.optimizer;
  if (optimizer.shard_group == 0) optimizer.shard_group = workloads::replica_sync(job.workload).ranks;
  check_rules(node, job.workload, job.system);
  check_counts(node, job.workload, job.system.simulation.steps);
}

// Faults strike the nodes, rails and spines that the job uses.
FaultContext fault_context(const Job& job) {
  const topology::ClusterSpec& cluster = job.system.cluster;
  const int nodes = (job.system.gpus + cluster.gpus_per_node - 1) / cluster.gpus_per_node;
  return {.nodes = nodes, .rails = cluster.rails_per_node(), .gpus_per_node = cluster.gpus_per_node, .spines = cluster.network.spines};
}

void read_whole_job(Job& job) {
  const Node& node = job.given;
  settle_recovery(job.whole.recovery);
  const FaultContext context = fault_context(job);
  if (const auto training = node.find("training")) check_training(*training);
  if (const auto checkpoint = node.find("checkpoint")) check_checkpoint(*checkpoint, job.whole.checkpoint, context.nodes);
  check_recovery(node, job.whole.recovery);
  const auto faults = node.find("faults");
  if (!faults) return;
  if (faults->is_null()) faults->fail_at_key("faults must be the name of a file, or a scenario, not empty");
  job.whole.faults = FaultScenario::read(*faults, context);
}

void check_experts(const Job& job) {
  if (!job.given.find("moe") || job.workload.model.moe) return;
  refuse(job.given, "moe", fmt::format("moe is for models with experts, and model '{}' has none", job.workload.model.name));
}

// Whether the parts of the plan go together is asked, or left open.
enum class Plan { settled, open };

// All that follows from what was read, checked.
Job finished(JobDocument document, Plan plan = Plan::settled) {
  Job& job = document.job;
  job.workload.experts.layer_chunks.clear();  // tuned once the job is read
  settle_gradients(job);
  settle_recipe(job);
  take_habits(job);
  check_experts(job);
  if (plan == Plan::settled) {
    check(job.given, job);
  } else {
    settle_gpu_count(job.given, job);
  }
  const int per_node = job.system.cluster.gpus_per_node;
  topology::settle_nics(job.system.cluster, document.parts.cluster.node, (job.system.gpus + per_node - 1) / per_node);
  job.system.cluster.sent_bytes_per_s = job.system.software.network_rate;
  read_whole_job(job);
  read_step_faults(job.given, job);
  job.parts = std::make_shared<const JobParts>(document.parts);
  job.resolved = {};
  Job out = job;
  const std::string name = job.name;
  out.resolved = ResolvedText(name, [document = std::move(document)] { return job_keys().write(document); });
  return out;
}

Node load_document(const JobRequest& request) {
  if (request.text) return Node::load_text(*request.text, request.path);
  const std::string file = job_file(request.path);
  if (file.empty()) throw config::InputError("unknown job " + config::shown(request.path), config::suggestion(request.path, job_names()));
  return Node::load_file(file);
}

void set_seed(Node& node, std::uint64_t seed) {
  if (seed > largest_seed) throw config::InputError(fmt::format("--seed must be between 0 and {}, not {}", largest_seed, seed));
  node.set("simulation.seed", std::to_string(seed));
}

}  // namespace

void add_faults(Node& node, const std::vector<std::string>& more) {
  if (more.empty()) return;
  std::vector<std::string> list;
  const auto simulation = node.find("simulation");
  const auto own = simulation ? simulation->find("faults") : std::nullopt;
  for (const Node& item : own ? own->items() : std::vector<Node>{}) list.push_back(config::yaml_text(item.as_string()));
  for (const std::string& item : more) list.push_back(config::yaml_text(item));
  node.set("simulation.faults", fmt::format("[{}]", fmt::join(list, ", ")));
}

int Job::distinct_steps() const {
  return workload.model.moe && !workloads::RoutingRegistry::get(workload.experts.routing).even() ? system.simulation.steps : 1;
}

namespace {

JobDocument read_document(Node node, const std::string& name, const Node& models) {
  JobDocument document{.models = models};
  document.job.name = name;
  document.job.given = std::move(node);
  job_keys().read(document.job.given, document);
  return document;
}

}  // namespace

Job read_job(Node node, const std::string& name, const Node& models) { return finished(read_document(std::move(node), name, models)); }

Job read_open_job(Node node, const std::string& name) { return finished(read_document(std::move(node), name, {}), Plan::open); }

Job with_settings(const Job& job, const Settings& settings) {
  JobDocument document{.job = job, .parts = *job.parts};
  Node& given = document.job.given;
  for (const auto& [key, value] : settings) {
    given.set(key, value);
    job_keys().read_at(key, *given.find_path(key), document);
  }
  return finished(std::move(document));
}

Node given_document(const JobRequest& request) {
  Node node = load_document(request);
  for (const auto& [key, value] : request.sets) set_in_job(node, key, value);
  if (request.seed) set_seed(node, *request.seed);
  add_faults(node, request.faults);
  return node;
}

std::string name_of(const JobRequest& request) { return std::filesystem::path(request.path).stem().string(); }

Job load_job(const JobRequest& request) { return read_job(given_document(request), name_of(request)); }

std::string input_hash(const Job& job) { return job.resolved.hash(); }

}  // namespace rehearse::sim
