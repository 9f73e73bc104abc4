// A trace for each simulated rank, as PyTorch's profiler writes one for each process: what tools that compare ranks read. Beside the GPU's
// operations a rank's file has the host that launches them and the steps (ProfilerStep#0, ...). docs/output-formats.md.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <vector>

#include "sim/report/host_launches.hpp"
#include "sim/report/output_folder.hpp"
#include "sim/report/trace_events.hpp"

namespace rehearse::sim {

class RankTraces {
 public:
  RankTraces(const JobSummary& job, const Timeline& timeline);

  // "rank0.json", or "rank0.json.gz" packed, for each of the timeline's ranks. They refer to this object.
  [[nodiscard]] std::vector<OutputFolder::File> files(bool packed) const;

  void write(std::size_t rank, std::ostream& out) const;

  // What one rank does in one step, by its start.
  struct Operation {
    TimelineEvent event;
    std::uint32_t place = 0;  // among the timeline's events
  };
  struct Step {
    std::vector<Operation> on_gpu, on_host;
    HostLaunches launches;  // of those on the GPU
  };

 private:
  [[nodiscard]] std::vector<Step> steps_of(std::uint32_t rank) const;
  [[nodiscard]] long long lead_ns() const;

  const Timeline& timeline_;
  std::vector<std::vector<std::uint32_t>> places_;  // [rank] of its operations
  TraceEvents events_;  // the GPUs' operations are in all files later than on the timeline, so that the host can launch the first ones
};

}  // namespace rehearse::sim
