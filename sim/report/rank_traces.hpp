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

  // What one rank does in one step: places in the timeline's events, by their start.
  struct Step {
    std::vector<std::uint32_t> on_gpu, on_host;
    HostLaunches launches;  // of those on the GPU
  };

 private:
  const Timeline& timeline_;
  std::vector<std::vector<Step>> steps_;  // [rank][step]
  TraceEvents events_;  // the GPUs' operations are in all files later than on the timeline, so that the host can launch the first ones
};

}  // namespace rehearse::sim
