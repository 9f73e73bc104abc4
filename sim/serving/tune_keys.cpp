#include "sim/serving/tune_keys.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "config/keys.hpp"
#include "sim/job/limits.hpp"
#include "sim/serving/placement.hpp"
#include "sim/serving/pool_keys.hpp"

namespace rehearse::sim {
namespace {

using config::Node;
using config::Parameter;
using config::Shape;

constexpr int most_tuned_ranks = 100'000, most_tuned_tokens = 100'000'000;

std::size_t part_named(const ServingJob& job, const std::string& name, const Node& at) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < job.parts.size(); ++i) {
    if (job.parts[i].name == name) return i;
    names.push_back(job.parts[i].name);
  }
  at.fail_at_key("no part " + config::shown(name) + " in the cluster", config::suggestion(name, names));
}

// One value for a cluster of one kind, or one for each part that is named; the others keep what they have.
template <class Value, class Read>
void read_by_part(const Node& node, const ServingJob& job, std::vector<Value>& values, Read read) {
  const bool parts = !job.parts.front().name.empty();
  if (!node.is_map()) {
    if (parts) node.fail("the cluster has parts: one value for each of them", "write {" + job.parts.front().name + ": ...}");
    values.front() = read(node);
    return;
  }
  if (!parts) node.fail("the cluster has no parts: one value is wanted");
  for (const std::string& name : node.keys()) values[part_named(job, name, node.at(name))] = read(node.at(name));
}

void read_list(const Node& node, const char* key, int most, std::vector<int>& into) {
  const auto given = node.find(key);
  if (!given) return;
  const std::vector<Node> items = given->is_sequence() ? given->items() : std::vector<Node>{*given};
  if (items.empty()) given->fail("a list of values to try is wanted");
  for (const Node& item : items) into.push_back(static_cast<int>(item.as_int(1, most)));
  std::ranges::sort(into);
  into.erase(std::unique(into.begin(), into.end()), into.end());
}

std::vector<ServingGoal> read_goals(const Node& node) {
  std::vector<ServingGoal> goals;
  for (const Node& item : node.is_sequence() ? node.items() : std::vector<Node>{node}) {
    const ServingGoal goal = serving_goal_names().read(item);
    if (std::ranges::find(goals, goal) != goals.end()) item.fail("named twice");
    goals.push_back(goal);
  }
  if (goals.empty()) node.fail("a goal is wanted", config::suggestion("", serving_goal_names().words()));
  if (const auto rates = std::ranges::find_if(goals, is_of_rates); goals.size() > 1 && rates != goals.end())
    node.fail(std::string(serving_goal_names().of(*rates)) + " is a goal alone: the others are for the job's load");
  return goals;
}

std::vector<workloads::ServingPrecision> read_precisions(const Node& node) {
  std::vector<workloads::ServingPrecision> out;
  for (const Node& item : node.is_sequence() ? node.items() : std::vector<Node>{node}) {
    const auto precision = config::mapping(serving_precision_keys()).read(item);
    if (std::ranges::find(out, precision) != out.end()) item.fail("named twice");
    out.push_back(precision);
  }
  if (out.empty()) node.fail("a list of values to try is wanted");
  return out;
}

// Rising, or where they are worth most.
void read_lengths(const Node& node, ServingTuneSpec& spec) {
  if (!node.is_sequence()) {
    static_cast<void>(node.as_choice({"auto"}));
    spec.divides_anywhere = true;
    return;
  }
  if (node.items().empty()) node.fail("lengths of prompts to divide at are wanted", "write [1024, 4096], or auto");
  for (const Node& item : node.items()) {
    const int tokens = static_cast<int>(item.as_int(1, most_tuned_tokens));
    if (!spec.lengths.empty() && tokens <= spec.lengths.back())
      item.fail(fmt::format("lengths rise: {} does not come behind {}", tokens, spec.lengths.back()));
    spec.lengths.push_back(tokens);
  }
}

Shape tune_map(std::vector<Parameter> keys) { return {.kind = Shape::Kind::mapping, .keys = std::move(keys)}; }

}  // namespace

const config::Names<ServingGoal>& serving_goal_names() {
  static const config::Names<ServingGoal> names{{"cost", ServingGoal::cost},       {"gpus", ServingGoal::gpus},
                                                {"ttft", ServingGoal::ttft},       {"tpot", ServingGoal::tpot},
                                                {"goodput", ServingGoal::goodput}, {"goodput-per-cost", ServingGoal::goodput_per_cost}};
  return names;
}

ServingTuneSpec usual_serving_tune(const ServingJob& job) {
  ServingTuneSpec spec;
  for (std::size_t part = 0; part < job.parts.size(); ++part) {
    spec.inventory.push_back(gpus_of_part(job, part));
    double price = 0;
    for (const Pool& pool : job.pools) {
      if (pool.part == part && pool.price_per_s > 0) price = pool.price_per_s;
    }
    spec.price_per_s.push_back(price);
  }
  return spec;
}

ServingTuneSpec read_serving_tune(const Node& node, const ServingJob& job) {
  node.allow_keys({"inventory", "price", "tp", "pp", "dp", "ep", "precision", "sequences", "tokens", "lengths", "goal", "keep", "confirm"});
  ServingTuneSpec spec = usual_serving_tune(job);
  if (const auto inventory = node.find("inventory"))
    read_by_part(*inventory, job, spec.inventory, [](const Node& n) { return static_cast<int>(n.as_int(0, most_gpus)); });
  if (const auto price = node.find("price"))
    read_by_part(*price, job, spec.price_per_s, [](const Node& n) { return n.as_quantity(config::Dimension::rate, 1e-12); });
  for (const auto& [key, into] : {std::pair{"tp", &spec.tp}, {"pp", &spec.pp}, {"dp", &spec.dp}, {"ep", &spec.ep}})
    read_list(node, key, most_tuned_ranks, *into);
  read_list(node, "sequences", most_tuned_tokens, spec.sequences);
  read_list(node, "tokens", most_tuned_tokens, spec.tokens);
  if (const auto precision = node.find("precision")) spec.precisions = read_precisions(*precision);
  if (const auto lengths = node.find("lengths")) read_lengths(*lengths, spec);
  if (const auto goal = node.find("goal")) spec.goals = read_goals(*goal);
  if (const auto keep = node.find("keep")) spec.keep = static_cast<int>(keep->as_int(1, 10'000));
  if (const auto confirm = node.find("confirm")) {
    spec.confirm = static_cast<int>(confirm->as_int(0, 1000));
    spec.confirms_all = true;
  }
  spec.keep = std::max(spec.keep, spec.confirm);
  return spec;
}

Shape serving_tune_shape() {
  const auto by_part = [](Shape one) { return config::either({one, tune_map({{"*", one, false, "", "Of a part."}})}); };
  const auto list = [](const Shape& one) { return config::either({one, {.kind = Shape::Kind::list, .parts = {one}}}); };
  const Shape ranks = config::whole(1, most_tuned_ranks).shape, tokens = config::whole(1, most_tuned_tokens).shape;
  const Shape rate{.kind = Shape::Kind::quantity, .dimension = config::Dimension::rate};
  return tune_map(
      {{"inventory", by_part(config::whole(0, most_gpus).shape), false, "the clusters', or what the pools take", "GPUs at most."},
       {"price", by_part(rate), false, "the pools', or 1 /h", "Of one GPU, in any currency."},
       {"tp", list(ranks), false, "powers of two that fit", "Tensor parallelism of an instance."},
       {"pp", list(ranks), false, "1", "Its stages."},
       {"dp", list(ranks), false, "1", "Its attention replicas."},
       {"ep", list(ranks), false, "tp*dp with attention replicas, or where the pool's is above 1",
        "Ranks among which the experts are spread."},
       {"precision", list(config::mapping(serving_precision_keys()).shape), false, "the pools'",
        "Number formats to try, each as a pool's."},
       {"sequences", list(tokens), false, "the pools'", "At once, of a replica."},
       {"tokens", list(tokens), false, "the pools'", "Of one pass."},
       {"lengths", config::either({{.kind = Shape::Kind::list, .parts = {tokens}}, config::word({"auto"}).shape}), false, "none",
        "Of prompts, in tokens, rising: at which those of a role may be divided among plans; or auto."},
       {"goal", list(config::word(serving_goal_names().words()).shape), false, "cost",
        "What is to be least at the job's load, of several the Pareto front; or goodput: the highest load within the inventory; or "
        "goodput-per-cost: the most requests for their price."},
       {"keep", config::whole(1, 10'000).shape, false, "20", "So many plans are reported."},
       {"confirm", config::whole(0, 1000).shape, false, "20, fewer where no other can be better",
        "So many of them are simulated, and the best of each kind."}});
}

}  // namespace rehearse::sim
