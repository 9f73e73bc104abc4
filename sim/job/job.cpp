#include "sim/job/job.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>

#include "config/data_dir.hpp"
#include "config/yaml_text.hpp"
#include "sim/job/checks.hpp"
#include "sim/job/override.hpp"
#include "sim/job/parts.hpp"
#include "sim/job/resolved.hpp"
#include "sim/job/sections.hpp"
#include "sim/job/support.hpp"
#include "sim/memory/tune_chunks.hpp"
#include "workloads/routing.hpp"

namespace rehearse::sim {
namespace {

using config::Node;

// What measured cases note beside a model; not part of it.
constexpr const char* bookkeeping[] = {"params_b", "params_active_b", "params_published_b", "cases"};

Part find_model(const Node& job, const Node& models) {
  Part model = find_part(job.at("model"), model_part, models);
  if (!models) return model;
  for (const char* key : bookkeeping) model.node = model.node.without(key);
  return model;
}

JobParts find_parts(const Node& job, const Node& models) {
  JobParts parts{find_model(job, models), find_part(job.at("cluster"), cluster_part), {}, {}};
  parts.gpu = take_gpu(parts.cluster);
  const auto software = job.find("software");
  parts.software = software ? find_part(*software, software_part) : ready_made(software_part, default_software);
  return parts;
}

void read_parts(const JobParts& parts, Job& job) {
  job.workload.model = workloads::read_model(parts.model.node, parts.model.name);
  job.system.cluster = topology::read_cluster(parts.cluster.node, parts.cluster.name);
  job.system.gpu = read_gpu(parts.gpu.node, parts.gpu.name);
  job.system.software = read_software(parts.software.node, parts.software.name);
  job.workload.fusions = kernel_fusions(job.system.software);
}

void read_sections(const Node& node, Job& job) {
  workloads::Workload& workload = job.workload;
  read_parallel(node, workload.parallel);
  read_batch(node, workload.batch);
  read_precision(node, workload.precision);
  const auto precision = node.find("precision");
  const bool says_gradients = precision && precision->is_map() && precision->find("gradients");
  // A stack that leaves fp16 gradients as autograd makes them reduces them so too.
  if (!says_gradients && job.system.software.memory.habits.half_gradients && workload.precision.weights == workloads::DType::fp16) {
    workload.precision.gradients = workloads::DType::fp16;
  }
  read_optimisations(node, workload);
  workload.recompute.stops_early = job.system.software.early_stop;
  workload.optimizer.by_tensor = job.system.software.zero3_by_tensor;
  read_experts(node, workload.experts);
  if (const auto graphs = node.find("cuda_graphs")) job.system.software.replays_graphs = graphs->as_bool();
  job.system.simulation = read_simulation(node);
}

void check(const Node& node, Job& job) {
  settle_gpus(node, job);
  check_support(node, job.workload, job.system.cluster);
  workloads::Optimizer& optimizer = job.workload.optimizer;
  if (optimizer.shard_group == 0) optimizer.shard_group = workloads::replica_sync(job.workload).ranks;
  check_layout(node, job.workload);
  check_batch(node, job.workload);
  check_recomputed_layers(node, job.workload);
  check_recomputed_modules(node, job.workload);
  check_experts(node, job.workload, job.system.simulation.steps);
  check_precision(node, job);
  check_host(node, job);
}

// Faults strike the nodes, rails and spines that the job uses.
FaultContext fault_context(const Job& job) {
  const topology::ClusterSpec& cluster = job.system.cluster;
  const int nodes = (job.system.gpus + cluster.gpus_per_node - 1) / cluster.gpus_per_node;
  return {.nodes = nodes, .rails = cluster.rails_per_node(), .gpus_per_node = cluster.gpus_per_node, .spines = cluster.network.spines};
}

Node load_document(const std::string& path) {
  std::error_code ignored;
  const bool is_file = path.find('/') != std::string::npos || path.ends_with(".yaml") || std::filesystem::is_regular_file(path, ignored);
  if (is_file) return Node::load_file(path);
  const std::string ready_made_path = config::data_file("workloads/jobs", path);
  if (!ready_made_path.empty()) return Node::load_file(ready_made_path);
  throw config::InputError("unknown job " + config::shown(path), config::suggestion(path, config::data_names("workloads/jobs")));
}

void set_seed(Node& node, std::uint64_t seed) {
  constexpr std::uint64_t largest = std::uint64_t{1} << 53U;
  if (seed > largest) throw config::InputError(fmt::format("--seed must be between 0 and {}, not {}", largest, seed));
  node.set("simulation.seed", std::to_string(seed));
}

// --fault after what the job itself lists.
void add_faults(Node& node, const std::vector<std::string>& more) {
  if (more.empty()) return;
  std::vector<std::string> list;
  const auto simulation = node.find("simulation");
  const auto own = simulation ? simulation->find("faults") : std::nullopt;
  for (const Node& item : own ? own->items() : std::vector<Node>{}) list.push_back(config::yaml_text(item.as_string()));
  for (const std::string& item : more) list.push_back(config::yaml_text(item));
  node.set("simulation.faults", fmt::format("[{}]", fmt::join(list, ", ")));
}

}  // namespace

int Job::distinct_steps() const {
  return workload.model.moe && !workloads::RoutingRegistry::get(workload.experts.routing).even() ? system.simulation.steps : 1;
}

Job read_job(Node node, const std::string& name, const Node& models) {
  node.allow_keys({"name",      "model",       "cluster",    "gpus",      "parallel",   "software", "batch",
                   "precision", "attention",   "schedule",   "recompute", "optimizer",  "offload",  "overlap",
                   "moe",       "cuda_graphs", "simulation", "training",  "checkpoint", "faults",   "recovery"});
  Job job;
  job.name = node.find("name") ? node.at("name").as_string() : name;
  const JobParts parts = find_parts(node, models);
  read_parts(parts, job);
  read_sections(node, job);
  check(node, job);
  job.whole = read_whole_job(node, fault_context(job));
  read_step_faults(node, job);
  job.resolved = resolved_job(node, job, parts);
  tune_chunks(job);
  return job;
}

Job load_job(const JobRequest& request) {
  Node node = load_document(request.path);
  for (const auto& [key, value] : request.sets) set_in_job(node, key, value);
  if (request.seed) set_seed(node, *request.seed);
  add_faults(node, request.faults);
  return read_job(node, std::filesystem::path(request.path).stem().string());
}

std::string input_hash(const Job& job) {
  // 64-bit FNV-1a (Fowler, Noll, Vo; draft-eastlake-fnv).
  constexpr std::uint64_t offset_basis = 0xcbf29ce484222325U;
  constexpr std::uint64_t prime = 0x100000001b3U;
  std::uint64_t hash = offset_basis;
  for (const char c : job.resolved.to_yaml()) hash = (hash ^ static_cast<unsigned char>(c)) * prime;
  return fmt::format("{:016x}", hash);
}

}  // namespace rehearse::sim
