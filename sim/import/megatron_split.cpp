#include "sim/import/megatron_split.hpp"

#include <fmt/format.h>

#include <string>
#include <vector>

namespace rehearse::sim {
namespace {

using config::Node;

void set_layers(const std::vector<std::int64_t>& layers, Draft& draft) {
  std::vector<Node> nodes;
  for (const std::int64_t each : layers) nodes.push_back(Node::scalar(std::to_string(each)));
  draft.set("parallel.layers_per_stage", Node::list(nodes));
}

// "Et*3|(tt|)*29,m|L": stages end at '|'; a letter or a group may be repeated; E embedding, t layer, m MTP, L loss.
class Layout {
 public:
  explicit Layout(const Node& node) : node_(node), text_(node.as_string()) {}
  std::string value() {
    std::string all = sequence(0);
    if (at_ != text_.size()) wrong();
    return all;
  }

 private:
  static constexpr std::size_t longest = 100'000;
  [[noreturn]] void wrong() const { node_.fail("not a pipeline layout", "for example Et*3|(tt|)*29,mL"); }

  std::string sequence(int depth) {
    std::string all;
    while (at_ < text_.size() && text_[at_] != ')') {
      const char c = text_[at_++];
      if (c == ',' || c == ' ') continue;
      std::string one(1, c);
      if (c == '(') {
        if (depth > 20) wrong();
        one = sequence(depth + 1);
        if (at_ >= text_.size()) wrong();
        ++at_;
      } else if (std::string_view("EtmL|").find(c) == std::string_view::npos) {
        wrong();
      }
      for (std::size_t times = repetitions(); times > 0; --times) all += one;
      if (all.size() > longest) wrong();
    }
    return all;
  }
  std::size_t repetitions() {
    if (at_ >= text_.size() || text_[at_] != '*') return 1;
    std::size_t value = 0;
    const std::size_t start = ++at_;
    while (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9' && value < 1000)
      value = value * 10 + static_cast<std::size_t>(text_[at_++] - '0');
    if (at_ == start || value > 1000) wrong();
    return value;
  }
  const Node& node_;
  std::string text_;
  std::size_t at_ = 0;
};

// Stages of a layout in its order, which is that of the model: entry k pp + s.
void read_layout(const Node& node, const SplitShape& shape, Draft& draft) {
  std::vector<std::int64_t> layers{0};
  std::int64_t all = 0;
  for (const char c : Layout(node).value()) {
    if (c == '|') layers.push_back(0);
    if (c != 't') continue;
    ++layers.back();
    ++all;
  }
  const auto stages = static_cast<std::int64_t>(layers.size());
  if (stages % shape.pp != 0) node.fail(fmt::format("{} parts are not a multiple of {} stages", stages, shape.pp));
  if (all != shape.layers) node.fail(fmt::format("the layout has {} layers, the model {}", all, shape.layers));
  if (stages > shape.pp) draft.set("parallel.vpp", stages / shape.pp);
  set_layers(layers, draft);
}

}  // namespace

void read_megatron_split(MegatronArguments& arguments, const SplitShape& shape, Draft& draft) {
  auto first = arguments.take("decoder-first-pipeline-num-layers"), last = arguments.take("decoder-last-pipeline-num-layers");
  if (!first) first = arguments.take("num-layers-in-first-pipeline-stage");
  if (!last) last = arguments.take("num-layers-in-last-pipeline-stage");
  const bool embedding = arguments.flag("account-for-embedding-in-pipeline-split"),
             loss = arguments.flag("account-for-loss-in-pipeline-split");
  const auto layout = arguments.take("pipeline-model-parallel-layout");
  if (shape.layers == 0 || shape.pp == 1) return;
  if (layout) return read_layout(*layout, shape, draft);
  const std::int64_t chunks = shape.pp * shape.vpp;
  std::vector<std::int64_t> layers(static_cast<std::size_t>(chunks), 0);
  if (first || last) {
    // A rank's layers, shared evenly among its virtual stages.
    const std::int64_t at_first = first ? first->as_int(1, 10'000) : 0, at_last = last ? last->as_int(1, 10'000) : 0;
    const std::int64_t others = shape.pp - (first ? 1 : 0) - (last ? 1 : 0), rest = shape.layers - at_first - at_last;
    if (rest < 0 || (others == 0 ? rest != 0 : rest % others != 0)) {
      (first ? *first : *last).fail(fmt::format("{} layers do not divide over the other {} stages", rest, others));
    }
    for (std::int64_t i = 0; i < chunks; ++i) {
      const std::int64_t stage = i % shape.pp;
      const std::int64_t own = first && stage == 0 ? at_first : last && stage == shape.pp - 1 ? at_last : rest / others;
      if (own % shape.vpp != 0)
        (first ? *first : *last).fail(fmt::format("{} layers do not divide over {} virtual stages", own, shape.vpp));
      layers[static_cast<std::size_t>(i)] = own / shape.vpp;
    }
    return set_layers(layers, draft);
  }
  if (!embedding && !loss) return;
  const std::int64_t with_ends = shape.layers + (embedding ? 1 : 0) + (loss ? 1 : 0);
  if (with_ends % chunks != 0) return;  // Megatron refuses it; the split of our own is even
  for (std::int64_t& each : layers) each = with_ends / chunks;
  layers.front() -= embedding ? 1 : 0;
  layers.back() -= loss ? 1 : 0;
  set_layers(layers, draft);
}

}  // namespace rehearse::sim
