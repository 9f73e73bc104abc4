#include "sim/job/tune_keys.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

namespace rehearse::sim {
namespace {

using config::Form;
using config::Key;
using config::Keys;
using config::Node;
using config::Shape;

constexpr std::size_t most_goals = 4;

Form<std::vector<Goal>> goals_form() {
  const Form<Goal> one = choice(goals());
  const Form<std::vector<Goal>> several = list_of(one);
  const auto read = [=](const Node& node) {
    if (!node.is_sequence()) return std::vector<Goal>{one.read(node)};
    std::vector<Goal> all = several.read(node);
    if (all.empty() || all.size() > most_goals) node.fail(fmt::format("tune.goal takes one to {} goals, not {}", most_goals, all.size()));
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (std::find(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(i), all[i]) != all.begin() + static_cast<std::ptrdiff_t>(i))
        node.items()[i].fail("named twice in tune.goal");
    }
    return all;
  };
  return {config::either({one.shape, several.shape}), read};
}

void read_goals(const Node& node, TuneSpec& spec) {
  spec.goals = goals_form().read(node);
  spec.goal = node;
}

// "2 %" or 0.02.
Form<double> share_form() {
  const auto read = [](const Node& node) {
    std::string text = node.as_string();
    const bool percent = text.ends_with('%');
    if (percent) text.pop_back();
    while (text.ends_with(' ')) text.pop_back();
    double value = -1;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (percent) value /= 100;
    if (error != std::errc() || end != text.data() + text.size() || !(value >= 0) || value > 1) {
      node.fail(fmt::format("{} takes a share from 0 % to 100 %, not {}", node.path(), config::shown(node.as_string())), "write 2 %");
    }
    return value;
  };
  return {{.kind = Shape::Kind::text}, read, [](double value) { return Node::scalar(fmt::format("{} %", 100 * value)); }};
}

Form<std::vector<Together>> together_form() {
  const auto read = [](const Node& node) {
    std::vector<Together> all;
    for (const Node& pair : node.items()) {
      const std::vector<Node> both = pair.items();
      if (both.size() != 2) pair.fail("tune.together takes pairs of a key and what it follows", "[parallel.sp, \"parallel.tp > 1\"]");
      all.push_back({both[0].as_string(), both[1].as_string(), pair});
    }
    return all;
  };
  const Shape text{.kind = Shape::Kind::text}, pair{.kind = Shape::Kind::list, .parts = {text}};
  return {{.kind = Shape::Kind::list, .parts = {pair}}, read};
}

Shape space_shape() {
  const Shape keys{.kind = Shape::Kind::mapping, .keys = {{"*", {}, false, "", "A key of the job, and the values to try."}}};
  return config::either({{.kind = Shape::Kind::choice, .choices = {"default", "mofa"}}, keys});
}

void read_space(const Node& node, TuneSpec& spec) {
  if (!node.is_map()) static_cast<void>(node.as_choice({"default", "mofa"}));
  spec.space = node;
}

const config::Names<Fits>& fits_words() {
  static const config::Names<Fits> names{{"surely", Fits::surely}, {"likely", Fits::likely}};
  return names;
}

const Keys<TuneSpec>& price_keys() {
  using K = Key<TuneSpec>;
  static const Keys<TuneSpec> keys{
      K("gpu_hour", &TuneSpec::gpu_hour, config::number(1e-6, 1e9), "Of one GPU for an hour, in any currency.").required(),
  };
  return keys;
}

}  // namespace

const config::Names<Goal>& goals() {
  static const config::Names<Goal> names{{"step", Goal::step},
                                         {"tokens_per_s", Goal::tokens_per_s},
                                         {"tokens_per_s_per_gpu", Goal::tokens_per_s_per_gpu},
                                         {"mfu", Goal::mfu},
                                         {"time", Goal::time},
                                         {"cost", Goal::cost},
                                         {"ettr", Goal::ettr},
                                         {"memory", Goal::memory}};
  return names;
}

const Keys<TuneSpec>& tune_keys() {
  using K = Key<TuneSpec>;
  static const Keys<TuneSpec> keys{
      K(
          "goal", goals_form().shape, read_goals, [](const TuneSpec& spec) { return spec.goal; },
          "What is to be best; of several, all plans that no other beats in every one are kept.")
          .otherwise("step; time where training is given"),
      K(
          "space", space_shape(), read_space, [](const TuneSpec& spec) { return spec.space; },
          "Keys of the job and the values to try of each: a list, divisors, powers-of-two, {from, to}, both or all.")
          .otherwise("default"),
      K("together", &TuneSpec::together, together_form(), "Keys that follow another: pairs of a key and another, or a condition on it."),
      K("memory", &TuneSpec::memory, config::number(0.01, 1), "Share of a GPU's memory that a plan may need."),
      K("fits", &TuneSpec::fits, config::choice(fits_words()),
        "Which plans count as fitting: those that also fit with the most that measured runs needed beyond the formula, or all that fit by "
        "it."),
      K(
          "price", price_keys().shape(), [](const Node& node, TuneSpec& spec) { price_keys().read(node, spec); },
          [](const TuneSpec&) { return Node(); }, "What goal: cost counts with."),
      K("keep", &TuneSpec::keep, config::whole(1, 10'000), "The best so many plans are reported."),
      K("confirm", &TuneSpec::confirm, config::whole(0, 1000), "So many of them are simulated."),
      K("within", &TuneSpec::within, share_form(), "Plans that differ by less count as equally good."),
  };
  return keys;
}

}  // namespace rehearse::sim
