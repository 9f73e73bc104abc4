#include "sim/faults/drawn_items.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "sim/faults/item_words.hpp"
#include "sim/faults/random.hpp"
#include "sim/faults/scenario.hpp"
#include "sim/faults/step_fault_text.hpp"

namespace rehearse::sim {
namespace {

constexpr std::uint64_t first_stream = std::uint64_t{1} << 32U;  // of random numbers: the sources of a scenario have those from 0 on

// `count` of 0, 1, ..., from - 1, each set equally likely, in order (Fisher and Yates, stopped early).
std::vector<int> some_of(int from, int count, Random& random) {
  std::vector<int> all(static_cast<std::size_t>(from));
  std::iota(all.begin(), all.end(), 0);
  for (int i = 0; i < count; ++i) std::iter_swap(all.begin() + i, all.begin() + i + random.below(from - i));
  all.resize(static_cast<std::size_t>(count));
  std::ranges::sort(all);
  return all;
}

// "3", "1 %" or "1%" of so many; at least one.
int read_count(ItemWords& words, int from, std::string_view what) {
  std::string word = words.next();
  const bool share = word.ends_with('%') || words.take("%");
  if (word.ends_with('%')) word.pop_back();
  if (!share) {
    const auto count = number_of<int>(word);
    if (!count || *count < 1) words.refuse(fmt::format("'{}' is not how many {}", word, what));
    if (*count > from) words.fail(fmt::format("the job has {} {}, not {}", from, what, *count));
    return *count;
  }
  constexpr double all_percent = 100;
  const auto percent = number_of<double>(word);
  if (!percent || !(*percent > 0) || *percent > all_percent) words.refuse(fmt::format("'{} %' is not a share of the {}", word, what));
  return std::max(1, static_cast<int>(std::llround(*percent / all_percent * from)));
}

// How many times as long each of them takes: "1.3", "1.1 to 1.5" (uniform) or "exponential 1.3" (1 + what is exponential with mean 0.3).
class Slowdowns {
 public:
  explicit Slowdowns(ItemWords& words) : exponential_(words.take("exponential")), low_(words.slowdown()), high_(low_) {
    if (!exponential_ && words.take("to")) high_ = words.slowdown();
    if (high_ < low_) words.refuse(fmt::format("in '{}' the largest slowdown comes second", words.text()));
  }
  [[nodiscard]] double draw(Random& random) const {
    if (exponential_) return 1 + random.exponential(low_ - 1);
    return low_ == high_ ? low_ : std::lerp(low_, high_, random.uniform());
  }

 private:
  bool exponential_;
  double low_, high_;
};

// "gpus", "nics" or "nodes": each as the item that names it.
std::vector<std::string> members(const std::string& what, const Places& places) {
  std::vector<std::string> all;
  if (what == "gpus") {
    for (int rank = 0; rank < places.gpus; ++rank) all.push_back(fmt::format("gpu {}", rank));
  } else if (what == "nodes") {
    for (int node = 0; node < places.nodes(); ++node) all.push_back(fmt::format("node {}", node));
  } else if (what == "nics") {
    for (int rank = 0; rank < places.gpus; ++rank) {
      const bool first = rank % places.gpus_per_node == 0 || places.rail_of(rank) != places.rail_of(rank - 1);
      if (first) all.push_back(fmt::format("nic {}", rank));
    }
  }
  return all;
}

DrawnItems draw_some(ItemWords& words, const std::string& what, const std::vector<std::string>& all, Random random) {
  const std::vector<int> chosen = some_of(static_cast<int>(all.size()), read_count(words, static_cast<int>(all.size()), what), random);
  const std::string how = words.next();
  std::optional<Slowdowns> slowdowns;
  if (how == "slow") slowdowns.emplace(words);
  const std::string rest = words.rest();
  DrawnItems drawn;
  for (const int member : chosen) {
    const std::string factor = slowdowns ? fmt::format(" {}", slowdowns->draw(random)) : "";
    drawn.items.push_back(fmt::format("{} {}{}{}", all[static_cast<std::size_t>(member)], how, factor, rest));
  }
  return drawn;
}

// "scenario at 36 h for 10 min": what is slow then, and what happens until the end of that time.
DrawnItems draw_scenario(ItemWords& words, const StepFaultContext& context) {
  constexpr double default_s = 600;
  constexpr int most_faults = 10'000'000;
  if (context.scenario == nullptr || !context.scenario->resolved()) {
    words.refuse("the job has no `faults` to draw from; simulate takes --faults SCENARIO as well");
  }
  if (!words.take("at")) words.refuse("'scenario' is followed by 'at' and a time");
  const double start_s = words.any_time_s();
  DrawnItems drawn{.items = {}, .scenario = true, .drawn_for_s = words.take("for") ? words.time_s("for") : default_s};
  words.expect_end();
  const auto stream = context.scenario->open(context.seed);
  int seen = 0;
  for (auto fault = stream->next(); fault && to_s(fault->at) < start_s + *drawn.drawn_for_s; fault = stream->next()) {
    if (++seen > most_faults) words.fail(fmt::format("more than {} faults come before that time", most_faults));
    const std::vector<std::string> items = items_within(*fault, start_s, *drawn.drawn_for_s, context.places);
    drawn.items.insert(drawn.items.end(), items.begin(), items.end());
  }
  return drawn;
}

}  // namespace

std::optional<DrawnItems> draw_items(const config::Node& node, std::size_t index, const StepFaultContext& context) {
  ItemWords words(node, node.as_string());
  const std::string what = words.next();
  if (what == "scenario") return draw_scenario(words, context);
  const std::vector<std::string> all = members(what, context.places);
  if (all.empty()) return std::nullopt;
  return draw_some(words, what, all, Random(context.seed, first_stream + index));
}

}  // namespace rehearse::sim
