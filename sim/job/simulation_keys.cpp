#include "sim/job/simulation_keys.hpp"

#include <fmt/format.h>

#include "sim/faults/item_words.hpp"
#include "sim/job/limits.hpp"
#include "sim/job/names.hpp"
#include "workloads/collective.hpp"

namespace rehearse::sim {
namespace {

using config::Key;
using config::Keys;
using config::Node;
using config::Shape;

constexpr int most_steps = 1000;

std::vector<std::string> algorithms() {
  std::vector<std::string> known = workloads::CollectiveRegistry::names();
  known.insert(known.begin(), "auto");
  return known;
}

void read_ranks(const Node& node, SimulationOptions& options) {
  options.all_ranks = node.as_choice({"folded", "all"}) == "all";
  if (!options.all_ranks && options.routing == Routing::ecmp) {
    node.fail("flows that ECMP leads over one link differ from those that it does not", "leave ranks out, or write: ranks: all");
  }
}

config::Form<double> timeout_form() {
  return config::quantity(config::Dimension::time).checked([](const Node& node, double seconds) {
    if (seconds > seconds_per_day) node.fail("longer than a day");
  });
}

}  // namespace

const Keys<SimulationOptions>& simulation_keys() {
  using K = Key<SimulationOptions>;
  using Options = SimulationOptions;
  static const Keys<Options> keys{
      K("granularity", &Options::granularity, choice(granularities), "How finely a step is cut into operations."),
      K("collectives", &Options::collectives, choice(fidelities),
        "step: every round; ring: one flow over all edges; closed: one timed activity; auto: what suits each call."),
      K("routing", &Options::routing, choice(routings),
        "Between switches: balanced over paths of equal cost, or ecmp: by hash, which needs all ranks."),
      K("algorithm", &Options::algorithm, config::word(algorithms()),
        "Of all collectives; auto: the fastest that the software has, per call."),
      K("protocol", &Options::protocol, choice(protocols),
        "NCCL's, of rings and trees where the cluster's links say what it does; auto: the fastest, per call."),
      K("solver", &Options::solver, choice(solvers),
        "auto: a heap of events and max-min shares; simgrid: everything through SimGrid, the same to 1e-9 and many times slower."),
      K(
          "ranks", {.kind = Shape::Kind::choice, .choices = {"folded", "all"}}, read_ranks,
          [](const Options& options) { return Node::scalar(options.all_ranks ? "all" : "folded", true); },
          "folded: one representative per class of ranks that behave alike.")
          .otherwise("folded; all with ecmp", [](Options& options) { options.all_ranks = options.routing == Routing::ecmp; }),
      K("steps", &Options::steps, config::whole(1, most_steps), "Simulated steps; with uneven routing each is routed anew."),
      K("seed", &Options::seed, config::whole<std::uint64_t>(0, largest_seed), "Of what is drawn at random."),
      K(
          "faults", {.kind = Shape::Kind::list, .parts = {item_shape()}}, [](const Node&, Options&) {}, {},
          "What goes wrong in the simulated step: [gpu 5 at 3.2 s, gpu 9 slow 1.3] (fault-format.md).")
          .otherwise("[]"),
      K("timeout", &Options::timeout_s, timeout_form(), "After that a communication that hangs is noticed; at most a day.").written({}),
  };
  return keys;
}

void read_step_faults(const Node& node, Job& job) {
  const auto section = node.find("simulation");
  const auto list = section ? section->find("faults") : std::nullopt;
  if (!list) return;
  SimulationOptions& options = job.system.simulation;
  options.faults = read_step_faults(*list, {job.system.places(), job.system.cluster.network.spines, options.seed, &job.whole.faults});
  for (const SlowSpell& spell : options.faults.spells) {
    if (spell.slowdown < down_slowdown || spell.for_s < options.timeout_s) continue;
    list->fail(fmt::format("'{}' is down for longer than simulation.timeout: that is a failure", spell.text),
               "'at' says when something fails");
  }
  if (options.steps == 1) return;
  if (!options.faults.failures.empty())
    section->find("steps")->fail_at_key("nothing comes after a step in which something fails", "leave simulation.steps out");
  if (!options.faults.spells.empty())
    section->find("steps")->fail_at_key("what comes and goes inside a step does so in one step only", "leave simulation.steps out");
}

}  // namespace rehearse::sim
