// A small result with round numbers, made by hand, for the reporters.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "sim/report/reporter.hpp"
#include "sim/timeline.hpp"

namespace rehearse::sim {

// Two stages of two ranks, a step of 2 s.
[[nodiscard]] StepResult hand_made_step(const std::string& method);

// Step results of 2 s and 2.2 s and a critical path of 1.8 s; the difference is all bubble.
[[nodiscard]] Comparison hand_made_comparison();

// Events written down one by one, in order.
struct ListedEvents final : TimelineEvents {
  std::vector<TimelineEvent> list;
  std::vector<std::pair<std::size_t, std::size_t>> arrows;  // places in the list

  void each(const Visit& visit) const override { std::ranges::for_each(list, visit); }
  void each_of(std::uint32_t rank, const Visit& visit) const override {
    for (const TimelineEvent& event : list) {
      if (event.rank == rank) visit(event);
    }
  }
  void each_arrow(const VisitArrow& visit) const override {
    for (const auto& [from, to] : arrows) visit(list.at(from), list.at(to));
  }
  [[nodiscard]] std::vector<MemorySample> memory_of(std::uint32_t /*rank*/) const override { return {}; }
};
[[nodiscard]] std::shared_ptr<ListedEvents> hand_made_events();

// Ranks 0 and 2; a forward on rank 0 is sent to rank 2, which gathers and computes.
[[nodiscard]] Timeline hand_made_timeline(std::shared_ptr<const TimelineEvents> events = hand_made_events());

[[nodiscard]] JobSummary hand_made_job();

[[nodiscard]] std::string written(const std::string& reporter, const Report& report);

}  // namespace rehearse::sim
