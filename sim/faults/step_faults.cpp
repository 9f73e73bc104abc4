#include "sim/faults/step_faults.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <sstream>

namespace rehearse::sim {
namespace {

using config::Node;

constexpr const char* examples =
    "for example 'gpu 5 at 3.2 s', 'gpu 5 slow 1.3', 'nic 5 slow 2', 'node 1 at 2 s', 'rail 0 slow 2', 'spine lost'";
constexpr double largest_slowdown = 1e6;

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream in(text);
  return {std::istream_iterator<std::string>(in), {}};
}

template <class Number>
std::optional<Number> number_of(const std::string& text) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(value) : std::nullopt;
}

// One item of the list.
class Item {
 public:
  Item(const Node& node, const Places& places, int spines)
      : node_(node), places_(places), spines_(spines), words_(words_of(node.as_string())) {}

  void add_to(StepFaults& faults) {
    const std::string what = next();
    if (what == "spine") return add_spine(faults);
    if (what == "gpu") {
      place(Component::gpu, places_.gpus, "GPUs", [&](int n) { set(n / places_.gpus_per_node, n % places_.gpus_per_node); });
    } else if (what == "nic") {
      place(Component::nic, places_.gpus, "GPUs", [&](int n) { set(n / places_.gpus_per_node, places_.rail_of(n)); });
    } else if (what == "node") {
      place(Component::host, places_.nodes(), "nodes", [&](int n) { set(n, 0); });
    } else if (what == "rail") {
      place(Component::switch_, places_.rails, "rails", [&](int n) { set(0, n); });
    } else {
      refuse(fmt::format("'{}' is not gpu, nic, node, rail or spine", what));
    }
    const std::string how = next();
    if (how == "slow") return add_slow(faults);
    if (how == "at") return add_failure(faults);
    refuse(fmt::format("'{}' is neither 'at' nor 'slow'", how));
  }

 private:
  [[noreturn]] void refuse(const std::string& why) const { node_.fail(why, examples); }

  std::string next() {
    if (at_ == words_.size()) refuse(fmt::format("'{}' is not complete", node_.as_string()));
    return words_[at_++];
  }

  void expect_end() const {
    if (at_ < words_.size()) refuse(fmt::format("'{}' is too much", words_[at_]));
  }

  void set(int node, int unit) {
    fault_.node = node;
    fault_.unit = unit;
  }

  template <class Set>
  void place(Component component, int count, std::string_view what, Set set_place) {
    const std::string word = next();
    const auto number = number_of<int>(word);
    if (!number) refuse(fmt::format("'{}' is not a whole number", word));
    if (*number < 0 || *number >= count)
      node_.fail(fmt::format("there is no {} {}: the job has {} {}, counted from 0", words_[0], *number, count, what));
    fault_.component = component;
    set_place(*number);
  }

  double factor() {
    const std::string word = next();
    const auto value = number_of<double>(word);
    if (!value || !(*value >= 1) || *value > largest_slowdown)
      refuse(fmt::format("'{}' is not how many times as long it takes, from 1 on", word));
    expect_end();
    return *value;
  }

  void add_slow(StepFaults& faults) {
    fault_.kind = FaultKind::slow;
    fault_.slowdown = factor();
    faults.slow.add(fault_, places_);
  }

  void add_spine(StepFaults& faults) {
    fault_.component = Component::spine;
    const std::string how = next();
    if (how == "slow") return add_slow(faults);
    if (how != "lost") refuse("a spine is lost, or slow; the others carry its traffic, so that it stops nothing");
    expect_end();
    fault_.lost = true;
    faults.slow.add(fault_, places_);
    if (spines_ <= faults.slow.lost_spines) {
      node_.fail(spines_ == 0 ? "the cluster does not say how many spines it has"
                              : fmt::format("the cluster has {} spines, and one must be left", spines_));
    }
  }

  void add_failure(StepFaults& faults) {
    std::string time = next();
    while (at_ < words_.size()) time.append(1, ' ').append(next());
    std::string why;
    const auto at_s = config::parse_quantity(time, config::Dimension::time, why);
    if (!at_s) refuse(fmt::format("'{}' is not a time: {}", time, why));
    if (*at_s < 0) node_.fail("the step begins at 0 s");
    if (*at_s > seconds_per_day) node_.fail("no step is longer than a day");
    const bool ports = fault_.component == Component::nic || fault_.component == Component::switch_;
    faults.failures.push_back({node_.as_string(), ports, ranks_hit(fault_, places_), *at_s});
  }

  const Node& node_;
  const Places& places_;
  int spines_;
  std::vector<std::string> words_;
  std::size_t at_ = 0;
  Fault fault_;
};

}  // namespace

StepFaults read_step_faults(const Node& list, const Places& places, int spines) {
  StepFaults faults;
  for (const Node& item : list.items()) Item(item, places, spines).add_to(faults);
  std::ranges::stable_sort(faults.failures, {}, &StepFailure::at_s);
  return faults;
}

}  // namespace rehearse::sim
