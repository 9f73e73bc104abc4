// What happens on a timeline, out of the times of executed operations: those of one rank and stream are in order, and all of them are
// merged as they are asked for.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "sim/engine/aftermath.hpp"
#include "sim/engine/execution.hpp"
#include "sim/engine/prepared_step.hpp"
#include "sim/timeline.hpp"
#include "workloads/allocations.hpp"

namespace rehearse::sim {

class StepEvents final : public TimelineEvents {
 public:
  // Executions of one step, each behind the one before, on the ranks of those that were added before. The step's calls are the timeline's
  // collectives from first_collective on. Returns when each execution begins, and when the last one ends.
  std::vector<double> add(std::shared_ptr<const PreparedStep> prepared, std::vector<Execution> executions, std::int32_t first_collective);
  // A step in which something failed; alone.
  void add(std::shared_ptr<const PreparedStep> prepared, FailedStep failed);

  [[nodiscard]] double last_end_s() const;

  void each(const Visit& visit) const override;
  void each_of(std::uint32_t rank, const Visit& visit) const override;
  void each_arrow(const VisitArrow& visit) const override;
  [[nodiscard]] std::vector<MemorySample> memory_of(std::uint32_t rank) const override;

 private:
  using Places = std::vector<std::uint32_t>;
  // Of a program, the places of the operations of each stream that it uses.
  using Tracks = std::vector<std::pair<std::uint8_t, Places>>;
  struct Part {
    std::shared_ptr<const PreparedStep> prepared;
    std::vector<Execution> executions;
    std::vector<double> begins_s;  // [execution]
    std::int32_t first_collective = 0;
    std::vector<Tracks> tracks;  // [program]
    std::unique_ptr<workloads::StepAllocations> allocations;
  };
  struct Cursor;

  void put(Part part);
  void merge(const Part& part, std::size_t execution, std::vector<Cursor> cursors, const std::vector<TimelineEvent>& receives,
             const Visit& visit) const;
  // Of the rank's streams at their first event, added to those there.
  static void add_cursors(const Part& part, std::size_t execution, std::uint32_t rank, std::vector<Cursor>& cursors);
  [[nodiscard]] TimelineEvent event_of(const Part& part, std::size_t execution, workloads::OpId id) const;
  void add_receive(const Part& part, const HungReceive& receive, double until_s);

  std::vector<Part> parts_;
  std::vector<bool> hung_, cut_;         // [op] of a step in which something failed
  std::vector<TimelineEvent> receives_;  // that hang there, in the order of events
  std::deque<std::string> names_;        // of theirs
};

}  // namespace rehearse::sim
