// The job's `moe` section.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <tuple>

#include "sim/job/counts_file.hpp"
#include "sim/job/limits.hpp"
#include "sim/job/workload_keys.hpp"
#include "workloads/names.hpp"

namespace rehearse::sim {
namespace {

using config::Form;
using config::Key;
using config::Keys;
using config::Node;
using config::Shape;
using config::whole;
using workloads::ExpertPlan;
using workloads::RoutedTokens;

constexpr int most_chunks = 1024;
constexpr int largest_multiple = 1'000'000;  // of an expert's rows
constexpr const char* loss_of_routing = "load_balancing_loss";
constexpr double least_loss = 1.0001, most_loss = 1.99;  // of two experts one alone makes 2
constexpr const char* ways_to_route =
    "balanced, {router: aux-loss}, {load_balancing_loss: logged}, {zipf: exponent}, {dirichlet: concentration} or {trace: counts.csv}";

// The load-balancing loss on text, by what balances the router in training (docs/moe.md). Ginis are turned into losses by the Dirichlet
// distribution that has them.
const workloads::Names<double> routers{
    // A Gini coefficient of 0.105 of DeepSeek-MoE-16B's experts on wikitext (Ma et al. 2026, arXiv 2605.20982); Mixtral 8x7B in training
    // logs 1.014 to 1.021 (NVIDIA/Megatron-LM, issue 756).
    {"aux-loss", 1.034},
    // 0.150 of Nemotron 3 Nano's 128 experts (the same).
    {"bias", 1.071},
    // Nothing, or a router that meets other text than it learned on: the middle one of Qwen3-Omni 30B in fine-tuning, 1.27
    // (modelscope/ms-swift, issue 7832), Qwen3 30B in fine-tuning, 1.43 (songCNMS/Nemotron, pull request 362), and Qwen3 30B of
    // mlc-ai/pith-train, issue 79, 1.87.
    {"unbalanced", 1.43}};

void read_senders(const Node& node, ExpertPlan& experts) {
  const bool counted = experts.routing == "counts", by_sender = counted && experts.senders == workloads::Senders::own;
  experts.senders = workloads::senders.read(node);
  if (by_sender && experts.senders != workloads::Senders::own)
    node.fail("the counts name the senders, so each has its own", "senders: own");
  if (counted && !by_sender && experts.senders == workloads::Senders::own) {
    node.fail("the counts do not name senders", fmt::format("senders: sampled, or a file of '{}'", titles_by_sender()));
  }
}

Node write_counts(const ExpertPlan& experts) {
  std::vector<Node> rows;
  for (const RoutedTokens& row : experts.counts) {
    std::vector<Node> cells;
    for (const int cell : {row.step, row.layer, row.microbatch, row.sender, row.expert})
      cells.push_back(Node::scalar(std::to_string(cell)));
    if (experts.senders != workloads::Senders::own) cells.erase(cells.begin() + 3);
    cells.push_back(Node::scalar(fmt::format("{}", row.tokens)));
    rows.push_back(Node::list(cells));
  }
  return Node::list(rows);
}

// A distribution with one number, by its registered name.
Key<ExpertPlan> drawn(const std::string& name, double low, double high, std::string means) {
  return Key<ExpertPlan>(
      name, {.kind = Shape::Kind::number, .low = low, .high = high},
      [=](const Node& node, ExpertPlan& experts) {
        experts.routing = name;
        experts.skew = node.as_number(low, high);
      },
      [=](const ExpertPlan& experts) { return experts.routing == name ? Node::scalar(fmt::format("{}", experts.skew)) : Node(); },
      std::move(means));
}

// Tokens counted, out of a file or here.
Key<ExpertPlan> counted(std::string name, Shape shape, void (*read)(const Node&, ExpertPlan&), std::string means) {
  return Key<ExpertPlan>(
      std::move(name), std::move(shape),
      [=](const Node& node, ExpertPlan& experts) {
        experts.routing = "counts";
        read(node, experts);
      },
      {}, std::move(means));
}

const Keys<ExpertPlan>& routing_keys() {
  using K = Key<ExpertPlan>;
  const Shape cell{.kind = Shape::Kind::number, .low = 0}, row{.kind = Shape::Kind::list, .parts = {cell}};
  static const Keys<ExpertPlan> keys{
      drawn("zipf", 0, 100, "Popularity of the experts falls by Zipf's law with this exponent."),
      drawn("dirichlet", 1e-3, 1e6, "Popularity is drawn from a Dirichlet distribution with this concentration."),
      drawn(loss_of_routing, least_loss, most_loss,
            "The same, by what trainers log under this name: 1 where experts get as much (Megatron-Core, averaged over layers)."),
      K(
          "router", choice(routers).shape,
          [](const Node& node, ExpertPlan& experts) {
            experts.routing = loss_of_routing;
            experts.skew = routers.read(node);
          },
          {}, "The same, by what balances the router in training on text; unbalanced: nothing, or fine-tuning (moe.md)."),
      counted("trace", {.kind = Shape::Kind::text}, read_counts_file,
              "A CSV file of step, layer, microbatch, expert, tokens, titled so and counted from 0; or with sender before expert, the "
              "sender's place in its expert-parallel group."),
      counted("counts", {.kind = Shape::Kind::list, .parts = {row}}, read_counts_here, "The same rows, here.")
          .written([](const ExpertPlan& experts) { return experts.routing == "counts" ? write_counts(experts) : Node(); }),
      K(
          "senders", choice(workloads::senders).shape, read_senders,
          [](const ExpertPlan& experts) { return Node::scalar(std::string(workloads::senders.of(experts.senders)), true); },
          "How the ranks of a group differ in where they send.")
          .otherwise("alike; own where counts name senders"),
      K("seed", &ExpertPlan::seed, whole<std::uint64_t>(0, largest_seed), "Of random routing."),
  };
  return keys;
}

void read_routing(const Node& node, ExpertPlan& experts) {
  if (!node.is_map()) {
    if (node.as_string() != "balanced") node.fail("moe.routing cannot be " + config::shown(node.as_string()), ways_to_route);
    return;
  }
  routing_keys().read(node, experts);
  int ways = 0;
  for (const char* way : {"zipf", "dirichlet", loss_of_routing, "router", "trace", "counts"}) ways += node.find(way) ? 1 : 0;
  if (ways != 1) node.fail("routing goes one way", ways_to_route);
  const auto place = [](const RoutedTokens& row) { return std::tuple(row.step, row.layer, row.microbatch, row.sender, row.expert); };
  std::ranges::stable_sort(experts.counts, {}, place);
}

Node write_routing(const ExpertPlan& experts) {
  return experts.routing == "balanced" ? Node::scalar("balanced", true) : routing_keys().write(experts);
}

Form<int> chunks_form() {
  Form<int> form = word_or("auto", 0, whole(1, most_chunks));
  form.read = [read = form.read](const Node& node) {
    const std::string text = node.is_scalar() ? node.as_string() : "";
    if (text != "auto" && !text.empty() && std::isalpha(static_cast<unsigned char>(text.front())) != 0) {
      node.fail("moe.chunks cannot be " + config::shown(text), "a number of chunks, or auto");
    }
    return read(node);
  };
  return form;
}

Form<std::vector<int>> thresholds_form() {
  return list_of(whole(1, most_chunks)).checked([](const Node& node, const std::vector<int>& thresholds) {
    if (thresholds.empty()) node.fail("thresholds is a list of numbers of chunks");
    if (!std::ranges::is_sorted(thresholds, std::less_equal<>{})) node.fail("thresholds must ascend");
  });
}

Key<ExpertPlan> routing_key() {
  return Key<ExpertPlan>("routing", config::either({{.kind = Shape::Kind::choice, .choices = {"balanced"}}, routing_keys().shape()}),
                         read_routing, write_routing, "How many tokens each expert gets.")
      .otherwise("balanced");
}

}  // namespace

const Keys<ExpertPlan>& served_experts_keys() {
  static const Keys<ExpertPlan> keys{routing_key()};
  return keys;
}

const Keys<ExpertPlan>& experts_keys() {
  using K = Key<ExpertPlan>;
  static const Keys<ExpertPlan> keys{
      routing_key(),
      K("capacity_factor", &ExpertPlan::capacity_factor, word_or("none", 0.0, config::number(1e-3, 1e6)),
        "An expert takes at most so many times its balanced share (of each sender); none: dropless."),
      K("pad_to", &ExpertPlan::pad_to, word_or("none", 0, word_or("capacity", ExpertPlan::to_capacity, whole(2, largest_multiple))),
        "Rows of each expert are filled up to a multiple of so many (Megatron-Core's --moe-router-padding-for-quantization), or to its "
        "capacity (--moe-pad-expert-input-to-capacity).")
          .written_if([](const ExpertPlan& experts) { return experts.pad_to != 0; })
          .otherwise("none"),
      K("nodes_per_token", &ExpertPlan::nodes_per_token, whole(1, 1'000'000),
        "At most so many nodes (supernodes) per token, dispatcher hierarchical.")
          .written_if([](const ExpertPlan& experts) { return experts.nodes_per_token > 0; })
          .otherwise("any number"),
      K("dispatcher", &ExpertPlan::dispatcher, choice(workloads::dispatchers),
        "How tokens travel; hierarchical: across nodes once, then inside (DeepEP)."),
      K("chunks", &ExpertPlan::chunks, chunks_form(),
        "Pieces of a layer's tokens whose exchange and computation overlap; auto: tuned to memory."),
      K("thresholds", &ExpertPlan::thresholds, thresholds_form(), "What chunks: auto chooses from, ascending."),
      K("chunk_recompute", &ExpertPlan::chunk_recompute, config::truth(), "Backward dispatches and computes each chunk's experts again.")
          .otherwise("true unless chunks is 1", [](ExpertPlan& experts) { experts.chunk_recompute = experts.chunks != 1; }),
  };
  return keys;
}

}  // namespace rehearse::sim
