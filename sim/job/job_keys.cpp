#include "sim/job/job_keys.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "sim/faults/fault_source.hpp"
#include "sim/job/faults_shape.hpp"
#include "sim/job/limits.hpp"
#include "sim/job/names.hpp"
#include "sim/job/simulation_keys.hpp"
#include "sim/job/tune_keys.hpp"
#include "sim/job/whole_job_keys.hpp"
#include "sim/job/workload_keys.hpp"
#include "workloads/schedule.hpp"

namespace rehearse::sim {
namespace {

using config::Key;
using config::Keys;
using config::Node;
using config::Shape;
using K = Key<JobDocument>;

// What measured cases note beside a model; not part of it.
constexpr const char* bookkeeping[] = {"params_b", "params_active_b", "params_published_b", "cases"};

// A section whose keys are read into what `field` gives; left out, its keys are settled all the same.
template <class Field, class Section>
K section(std::string name, Field field, const Keys<Section>& keys, std::string means) {
  return K(
             std::move(name), [&keys] { return keys.shape(); },
             [=, &keys](const Node& node, JobDocument& document) { keys.read(node, field(document)); },
             [=, &keys](const JobDocument& document) { return keys.write(field(document)); }, std::move(means))
      .otherwise("", [=, &keys](JobDocument& document) { keys.read(std::nullopt, field(document)); })
      .below([=, &keys](std::string_view path, const Node& node, JobDocument& document) { keys.read_at(path, node, field(document)); });
}

// Written as the file has it.
std::function<Node(const JobDocument&)> as_given(std::string key) {
  return [key = std::move(key)](const JobDocument& document) { return document.job.given.find(key).value_or(Node()); };
}

// A part that may also be a name or a path; inline it may have a name.
Shape part_shape(Shape keys) {
  keys.keys.insert(keys.keys.begin(), {"name", {.kind = Shape::Kind::text}, false, "inline", "What it is called."});
  keys.keys.insert(keys.keys.begin() + 1, {like, {.kind = Shape::Kind::text}, false, "", "A part that has whatever is not stated here."});
  return config::either({{.kind = Shape::Kind::text}, std::move(keys)});
}

Shape whole_cluster_shape() {
  Shape shape = topology::cluster_shape();
  const auto gpu = std::ranges::find(shape.keys, "gpu", &config::Parameter::name);
  gpu->shape = part_shape(gpu_shape());
  return shape;
}

Shape huggingface_shape() {
  return {.kind = Shape::Kind::mapping,
          .keys = {{"hf", {.kind = Shape::Kind::text}, true, "", "Path of a HuggingFace config.json."},
                   {"name", {.kind = Shape::Kind::text}, false, "as the file says", "What it is called."}}};
}

Shape model_shape() {
  Shape shape = part_shape(workloads::model_keys().shape());
  shape.parts.push_back(huggingface_shape());
  return shape;
}

void read_model(const Node& node, JobDocument& document) {
  Part& part = document.parts.model;
  part = find_part(node, model_part, document.models);
  for (const char* key : bookkeeping) {
    if (document.models) part.node = part.node.without(key);
  }
  document.job.workload.model = workloads::read_model(part.node, part.name);
}

Node write_model(const JobDocument& document) {
  const workloads::Model& model = document.job.workload.model;
  return named({model.name, workloads::model_keys().write(model)});
}

void read_cluster(const Node& node, JobDocument& document) {
  JobParts& parts = document.parts;
  parts.cluster = find_part(node, cluster_part);
  if (const auto several = parts.cluster.node.find("parts"))
    several->fail_at_key("training runs on one cluster, not on parts", "parts are for jobs with the section 'serving'");
  parts.gpu = take_gpu(parts.cluster);
  document.job.system.cluster = topology::read_cluster(parts.cluster.node, parts.cluster.name);
  document.job.system.gpu = read_gpu(parts.gpu.node, parts.gpu.name);
}

Node write_cluster(const JobDocument& document) {
  Node cluster = named(document.parts.cluster);
  cluster.set_child("gpu", named(document.parts.gpu));
  return cluster;
}

void take_software(Part part, JobDocument& document) {
  document.job.system.software = read_software(part.node, part.name);
  document.job.workload.fusions = kernel_fusions(document.job.system.software);
  document.parts.software = std::move(part);
}

void read_stack(const Node& node, JobDocument& document) {
  take_software(find_part(node, software_part), document);
  if (!document.job.system.software.trains) {
    node.fail(fmt::format("software {} serves and does not train", config::shown(document.parts.software.name)),
              "write for example software: megatron-core");
  }
}

Shape graphs_shape() { return config::either({config::truth().shape, graph_scopes_form().shape}); }

void read_graphs(const Node& node, JobDocument& document) {
  if (node.is_scalar()) {
    document.job.system.software.replays_graphs = config::truth().read(node);
  } else {
    document.job.workload.graphs = graph_scopes_form().read(node);
  }
}

Node write_graphs(const JobDocument& document) {
  const auto& graphs = document.job.workload.graphs;
  return graphs.empty() ? config::truth().write(document.job.system.software.replays_graphs) : graph_scopes_form().write(graphs);
}

// With the faults and the timeout in the file's words.
Node write_simulation(const JobDocument& document) {
  Node out = simulation_keys().write(document.job.system.simulation);
  for (const char* key : {"faults", "timeout"}) {
    if (const auto given = document.job.given.find_path(std::string("simulation.") + key)) out.set_child(key, *given);
  }
  return out;
}

}  // namespace

Shape faults_shape() {
  return config::either({{.kind = Shape::Kind::text},
                         {.kind = Shape::Kind::mapping,
                          .keys = {{"*", fault_sources_shape(), false, "", "A source of faults, by any name (fault-format.md)."}}}});
}

const Keys<JobDocument>& job_keys() {
  const auto workload = [](auto& document) -> auto& { return document.job.workload; };
  static const Keys<JobDocument> keys{
      K(
          "format", [](auto& d) -> auto& { return d.format; }, config::whole(1, 1),
          "Version of the job file's format that it is written in.")
          .written_if([](const JobDocument&) { return false; }),
      K(
          "name", [](auto& d) -> auto& { return d.job.name; }, config::text(), "What results call the job.")
          .otherwise("the file's name without .yaml"),
      K("model", model_shape, read_model, write_model, "What is trained: a name, a path or the content.").required(),
      K(
          "cluster", [] { return part_shape(whole_cluster_shape()); }, read_cluster, write_cluster,
          "On what: a name, a path or the content.")
          .required(),
      K(
          "gpus", [](auto& d) -> auto& { return d.job.system.gpus; }, config::whole(1, most_gpus), "The first so many GPUs of the cluster.")
          .otherwise("tp*cp*pp*dp, or all of them where dp is left out too"),
      section(
          "parallel", [=](auto& d) -> auto& { return workload(d).parallel; }, parallel_keys(), "tp*cp*pp*dp = gpus."),
      K(
          "software", [] { return part_shape(software_shape()); }, [](const Node& node, JobDocument& d) { read_stack(node, d); },
          [](const JobDocument& d) { return named(d.parts.software); }, "The training stack.")
          .otherwise(default_software_words,
                     [](JobDocument& d) { take_software(ready_made(software_part, default_software(d.job.system.gpu.vendor)), d); }),
      section(
          "batch", [=](auto& d) -> auto& { return workload(d).batch; }, batch_keys(),
          "How many sequences a step has, and how long they are.")
          .required(),
      K(
          "precision", precision_form().shape,
          [=](const Node& node, JobDocument& d) { workload(d).precision = precision_form().read(node); },
          [](const JobDocument& d) { return precision_form().write(d.job.workload.precision); },
          "Of the matrix products; or of each of compute, weights, gradients and optimizer.")
          .otherwise("bf16"),
      K(
          "attention", [=](auto& d) -> auto& { return workload(d).attention; }, choice(workloads::attentions), "Its kernel.")
          .feature(),
      K(
          "schedule", [=](auto& d) -> auto& { return workload(d).schedule; }, config::word(workloads::ScheduleRegistry::names()),
          "Order of work in the pipeline.")
          .otherwise("1f1b, interleaved-1f1b when vpp > 1",
                     [](JobDocument& d) { d.job.workload.schedule = workloads::usual_schedule(d.job.workload.parallel.vpp); }),
      K(
          "recompute", [=](auto& d) -> auto& { return workload(d).recompute; }, recompute_form(),
          "What backward computes again instead of keeping it; selective: core attention.")
          .feature(),
      section(
          "lora", [=](auto& d) -> auto& { return workload(d).lora; }, lora_keys(),
          "Fine-tuning by low-rank adapters; all other weights are frozen.")
          .written_if([](const JobDocument& d) { return d.job.workload.lora.on(); }),
      section(
          "optimizer", [=](auto& d) -> auto& { return workload(d).optimizer; }, optimizer_keys(),
          "How weights are updated, and what of it the replicas share."),
      section("offload", workload, offload_keys(), "What waits in host memory instead of the GPU's."),
      section(
          "overlap", [=](auto& d) -> auto& { return workload(d).overlap; }, overlap_keys(), "What runs beside computation."),
      section(
          "moe", [=](auto& d) -> auto& { return workload(d).experts; }, experts_keys(), "Models with experts only (moe.md).")
          .written_if([](const JobDocument& d) { return d.job.workload.model.moe.has_value(); }),
      K("cuda_graphs", graphs_shape(), read_graphs, write_graphs,
        "The host replays passes as graphs, whose kernels cost it nothing: all of a layer, or the scopes named (Megatron-Core's "
        "--cuda-graph-scope).")
          .otherwise("false")
          .feature(),
      section(
          "simulation", [](auto& d) -> auto& { return d.job.system.simulation; }, simulation_keys(),
          "How the timeline is made, not what is modelled.")
          .written(write_simulation),
      section(
          "training", [](auto& d) -> auto& { return d.job.whole; }, training_keys(),
          "Length of the whole job: one of steps, tokens and time (whole-jobs.md).")
          .written(as_given("training")),
      section(
          "checkpoint", [](auto& d) -> auto& { return d.job.whole.checkpoint; }, checkpoint_keys(), "Of the whole job.")
          .written(as_given("checkpoint")),
      section(
          "recovery", [](auto& d) -> auto& { return d.job.whole.recovery; }, recovery_keys(), "Of the whole job.")
          .written(as_given("recovery")),
      K(
          "faults", faults_shape, [](const Node&, JobDocument&) {}, [](const JobDocument& d) { return d.job.whole.faults.resolved(); },
          "Of the whole job: a scenario, a file or a mapping of sources (fault-format.md)."),
      K(
          "tune", [] { return tune_keys().shape(); },
          [](const Node& node, JobDocument&) {
            TuneSpec spec;
            tune_keys().read(node, spec);
          },
          [](const JobDocument&) { return Node(); }, "What `rehearse tune` searches (tuning.md); no part of the job itself."),
  };
  return keys;
}

Shape job_shape() { return job_keys().shape(); }

}  // namespace rehearse::sim
