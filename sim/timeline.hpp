// A simulated step as people and trace tools look at it: who does what when, and what it holds.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "sim/result.hpp"

namespace rehearse::sim {

// One bar of the timeline.
struct TimelineEvent {
  std::string_view name;    // "F0.3 layer 12", "recv F 3"; good as long as the TimelineEvents that it comes from
  std::uint32_t rank = 0;   // index into Timeline::ranks
  std::uint8_t stream = 0;  // index into Timeline::streams
  Phase phase = Phase::compute;
  double start_s = 0, end_s = 0;
  std::int32_t microbatch = -1, chunk = -1, layer = -1;
  std::int32_t collective = -1;                                         // index into Timeline::collectives (copies too), or -1
  enum class End : std::uint8_t { ended, hung, cut } end = End::ended;  // hung: waits until detection; cut: stopped by the failure
};

struct TimelineInstant {  // something that happens at one time
  std::string name;
  std::vector<std::uint32_t> ranks;  // indices into Timeline::ranks
  double at_s = 0;
};

struct TimelineRank {
  int rank = 0, stage = 0, ranks = 1;
  int node = 0, gpu_in_node = 0;
  double dead_s = -1;  // since when its GPU is dead; < 0: it is not
};

struct TimelineCollective {  // what Kineto puts into the args of a NCCL kernel, or of a copy
  std::string name;          // "allreduce", "_allgather_base", "reduce_scatter", "send", "recv", "Memcpy DtoH (Device -> Pinned)"
  std::string group;         // "tp"
  std::string dtype;         // "BFloat16"
  double bytes = 0;          // In msg size x element size
  int group_size = 0;
  std::vector<int> group_ranks;
  std::string algorithm = {};  // "ring", "tree", ...: what it was priced with
  std::string protocol = {};   // CallPrice::protocol_name(); "" where nobody asks for one and its links list none
};

struct MemorySample {
  double at_s = 0;
  MemoryBytes held;  // from then on
};

// What happens on a timeline, made each time that it is asked for: nobody holds the events of a large step.
class TimelineEvents {
 public:
  virtual ~TimelineEvents() = default;

  using Visit = std::function<void(const TimelineEvent&)>;
  virtual void each(const Visit& visit) const = 0;                         // by start time, then rank, then stream
  virtual void each_of(std::uint32_t rank, const Visit& visit) const = 0;  // those of one, in the same order

  // Arrows from the end of one event to the start of another (pipeline sends).
  using VisitArrow = std::function<void(const TimelineEvent& from, const TimelineEvent& to)>;
  virtual void each_arrow(const VisitArrow& visit) const = 0;

  // In order of time, the first at 0; nothing of a step in which something failed.
  [[nodiscard]] virtual std::vector<MemorySample> memory_of(std::uint32_t rank) const = 0;
};

struct Timeline {
  std::vector<std::string> streams;  // "compute", "tp", ...
  std::vector<double> steps_s;       // when each simulated step begins, and when the last one ends
  double issue_s = 0, launch_s = 0;  // of one kernel on the host: the framework's time, then the driver's
  std::vector<TimelineRank> ranks;
  std::vector<TimelineCollective> collectives;
  std::vector<TimelineInstant> instants;
  bool knows_memory = false;  // whether its events do
  std::shared_ptr<const TimelineEvents> events;
};

}  // namespace rehearse::sim
