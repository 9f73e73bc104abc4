#include "sim/faults/step_faults.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "sim/faults/drawn_items.hpp"
#include "sim/faults/item_words.hpp"
#include "sim/faults/scenario.hpp"

namespace rehearse::sim {
namespace {

using config::Node;

// One item of the list that names what it strikes.
class Item {
 public:
  Item(const Node& node, std::string text, const Places& places, int spines)
      : words_(node, std::move(text)), places_(places), spines_(spines) {}

  void add_to(StepFaults& faults, bool drawn) {
    const std::string what = words_.next();
    if (what == "spine") return add_spine(faults);
    place(what);
    const std::string how = words_.next();
    if (how == "at") return add_failure(faults, drawn);
    if (fault_.component == Component::any) words_.refuse("the job as a whole fails 'at' a time");
    if (how == "slow") return add_slow(faults);
    if (how == "down") return add_down(faults);
    words_.refuse(fmt::format("'{}' is none of 'at', 'slow' and 'down'", how));
  }

 private:
  void place(const std::string& what) {
    if (what == "gpu") {
      const int rank = number_below(what, places_.gpus, "GPUs");
      set(Component::gpu, rank / places_.gpus_per_node, rank % places_.gpus_per_node);
    } else if (what == "nic") {
      const int rank = number_below(what, places_.gpus, "GPUs");
      set(Component::nic, rank / places_.gpus_per_node, places_.rail_of(rank));
    } else if (what == "node") {
      set(Component::host, number_below(what, places_.nodes(), "nodes"), 0);
    } else if (what == "rail") {
      set(Component::switch_, 0, number_below(what, places_.rails, "rails"));
    } else if (what != "job") {
      words_.refuse(fmt::format("'{}' is not gpu, nic, node, rail, spine or job, nor gpus, nics, nodes or scenario", what));
    }
  }

  void set(Component component, int node, int unit) {
    fault_.component = component;
    fault_.node = node;
    fault_.unit = unit;
  }

  int number_below(const std::string& what, int count, std::string_view of_what) {
    const int number = words_.whole_number();
    if (number < 0 || number >= count)
      words_.fail(fmt::format("there is no {} {}: the job has {} {}, counted from 0", what, number, count, of_what));
    return number;
  }

  [[nodiscard]] bool ports() const { return fault_.component == Component::nic || fault_.component == Component::switch_; }

  [[nodiscard]] std::vector<int> ranks() const {
    if (fault_.component != Component::any) return ranks_hit(fault_, places_);
    std::vector<int> all(static_cast<std::size_t>(places_.gpus));
    std::iota(all.begin(), all.end(), 0);
    return all;
  }

  void add_slow(StepFaults& faults) {
    fault_.kind = FaultKind::slow;
    fault_.slowdown = words_.slowdown();
    if (words_.more()) return add_spell(faults);
    faults.slow.add(fault_, places_);
  }

  void add_down(StepFaults& faults) {
    if (!ports()) words_.refuse("ports and rails go down, and come up again; a GPU is slow, or fails 'at' a time");
    fault_.slowdown = down_slowdown;
    add_spell(faults);
  }

  void add_spell(StepFaults& faults) {
    if (fault_.component == Component::spine) words_.fail("a spine is slow or lost in the whole step");
    SlowSpell spell{.text = words_.text(), .ports = ports(), .ranks = ranks(), .slowdown = fault_.slowdown};
    if (!words_.take("from")) words_.refuse(fmt::format("'{}' does not say from when", words_.text()));
    spell.from_s = words_.time_s("from");
    if (!words_.take("for")) words_.refuse(fmt::format("'{}' does not say for how long", words_.text()));
    spell.for_s = words_.time_s("for");
    if (spell.for_s <= 0) words_.fail("must be longer than 0 s");
    if (words_.take("every")) spell.every_s = words_.time_s("every");
    if (spell.every_s && *spell.every_s <= spell.for_s) words_.fail("it comes again before it is over");
    words_.expect_end();
    if (spell.ports) faults.flapping.insert(spell.ranks.begin(), spell.ranks.end());
    faults.spells.push_back(std::move(spell));
  }

  void add_spine(StepFaults& faults) {
    fault_.component = Component::spine;
    const std::string how = words_.next();
    if (how == "slow") return add_slow(faults);
    if (how != "lost") words_.refuse("a spine is lost, or slow; the others carry its traffic, so that it stops nothing");
    if (words_.more()) words_.fail("a spine is slow or lost in the whole step");
    fault_.lost = true;
    faults.slow.add(fault_, places_);
    if (spines_ <= faults.slow.lost_spines) {
      words_.fail(spines_ == 0 ? "the cluster does not say how many spines it has"
                               : fmt::format("the cluster has {} spines, and one must be left", spines_));
    }
  }

  void add_failure(StepFaults& faults, bool drawn) {
    const double at_s = words_.time_s("at");
    words_.expect_end();
    faults.failures.push_back({words_.text(), ports(), ranks(), at_s, drawn});
  }

  ItemWords words_;
  const Places& places_;
  int spines_;
  Fault fault_;
};

}  // namespace

StepFaults read_step_faults(const Node& list, const StepFaultContext& context) {
  StepFaults faults;
  const std::vector<Node> items = list.items();
  for (std::size_t i = 0; i < items.size(); ++i) {
    const auto drawn = draw_items(items[i], i, context);
    if (drawn && drawn->drawn_for_s) faults.drawn_for_s = std::min(*drawn->drawn_for_s, faults.drawn_for_s.value_or(*drawn->drawn_for_s));
    for (const std::string& text : drawn ? drawn->items : std::vector{items[i].as_string()}) {
      Item(items[i], text, context.places, context.spines).add_to(faults, drawn && drawn->scenario);
      faults.items.push_back(text);
    }
  }
  std::ranges::stable_sort(faults.failures, {}, &StepFailure::at_s);
  return faults;
}

}  // namespace rehearse::sim
