// All keys of a serving job, for lists, hints and the schema.
#include "sim/cost/gpu.hpp"
#include "sim/job/faults_shape.hpp"
#include "sim/job/limits.hpp"
#include "sim/job/workload_keys.hpp"
#include "sim/serving/pool_keys.hpp"
#include "sim/serving/router.hpp"
#include "sim/serving/serving_job.hpp"
#include "sim/serving/tune_keys.hpp"

namespace rehearse::sim {
namespace {

using config::Parameter;
using config::Shape;

Shape map(std::vector<Parameter> keys) { return {.kind = Shape::Kind::mapping, .keys = std::move(keys)}; }

// A name, a path, or the content with a name.
Shape part_shape(Shape keys) {
  keys.keys.insert(keys.keys.begin(), {"name", {.kind = Shape::Kind::text}, false, "inline", "What it is called."});
  return config::either({{.kind = Shape::Kind::text}, std::move(keys)});
}

Shape cluster_with_parts() {
  const Shape bandwidth{.kind = Shape::Kind::quantity, .dimension = config::Dimension::bandwidth};
  const Shape part = map({{"cluster", {.kind = Shape::Kind::text}, true, "", "A name, a path or the content."},
                          {"nodes", config::whole(1, most_gpus).shape, false, "the cluster's", "So many of them."}});
  std::vector<Parameter> joint{{"bandwidth", bandwidth, true, "", "One direction."},
                               {"efficiency", config::number(1e-3, 1).shape, false, "1", "Share that large messages reach."},
                               {"latency", {.kind = Shape::Kind::quantity}, false, "0 s", "Of a message."}};
  const Shape each = map(joint);
  joint.insert(joint.begin(), {"parts", {.kind = Shape::Kind::list, .parts = {{.kind = Shape::Kind::text}}}, true, "", "The two."});
  const Shape between = config::either({each, {.kind = Shape::Kind::list, .parts = {map(joint)}}});
  return map({{"parts", map({{"*", part, false, "", "A part by its name."}}), true, "", "Clusters of different machines."},
              {"between", between, false, "the smaller side's NICs",
               "The network between each pair of them, or a list with one for each pair that it names."}});
}

Shape serving_section() {
  const Shape routers = config::word(RouterRegistry::names()).shape;
  return map(
      {{"pools", map({{"*", pool_keys().shape(), false, "", "A pool by its name."}}), true, "", "Equal instances."},
       {"transfer", transfer_keys().shape(), false, "", "Of the cache, where prefill and decode are apart."},
       {"router",
        map({{"prefill", routers, false, "least-requests", "Where a prompt goes."},
             {"decode", routers, false, "least-kv", "Where it is decoded."}}),
        false, "", "To which instance."},
       {"load", load_shape(), true, "", "What clients ask."},
       {"slo", promise_keys().shape(), false, "", "What is promised."},
       {"recovery",
        {.kind = Shape::Kind::quantity},
        false,
        "10 min",
        "For run: until an instance is back, where a failure does not say; repair and loading of weights, with reload repair alone."},
       {"reload", config::word({"counted", "disk", "storage", "peer"}).shape, false, "counted",
        "Where an instance that returns has its weights from, behind its repair: a disk of each node, the cluster's storage, or "
        "another instance over the network; counted: the repair has the time for it."},
       {"isolate", config::word({"prefill", "decode"}).shape, false, "", "This side alone, the other taken as unlimited."}});
}

}  // namespace

Shape serving_shape() {
  Shape cluster = part_shape(topology::cluster_shape());
  cluster.parts.push_back(cluster_with_parts());
  return map({{"format", config::whole(1, 1).shape, false, "1", "Version of the job file's format that it is written in."},
              {"name", {.kind = Shape::Kind::text}, false, "the file's name without .yaml", "What results call the job."},
              {"model", part_shape(workloads::model_keys().shape()), true, "", "What is served."},
              {"cluster", std::move(cluster), true, "", "On what."},
              {"software", part_shape(software_shape()), false, "each pool's", "The engine."},
              {"moe", served_experts_keys().shape(), false, "tokens go to all experts alike", "Models with experts only."},
              {"serving", serving_section(), true, "", "How it is served, and to whom."},
              {"faults", faults_shape(), false, "", "For run: a scenario, a file or a mapping of sources (fault-format.md)."},
              {"tune", serving_tune_shape(), false, "", "What tune may choose from."},
              {"simulation",
               map({{"seed", config::whole(0, 1LL << 53U).shape, false, "1", "Of arrivals, lengths and routers."},
                    {"granularity", config::word({"iteration", "layer"}).shape, false, "iteration",
                     "iteration: a pass is one activity; layer: of instances over several nodes each layer is, and what it sends shares "
                     "links with caches."},
                    {"faults",
                     {.kind = Shape::Kind::list, .parts = {{.kind = Shape::Kind::text}}},
                     false,
                     "none",
                     "What goes wrong, one by one."}}),
               false, "", "How it is simulated."}});
}

}  // namespace rehearse::sim
