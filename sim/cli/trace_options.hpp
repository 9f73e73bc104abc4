// What commands that make a timeline let one say about its traces: --trace-per-rank, --trace-gzip, --trace-args.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "sim/report/output_folder.hpp"
#include "sim/report/reporter.hpp"
#include "sim/report/trace_events.hpp"

namespace CLI {
class App;
}

namespace rehearse::cli {

class TraceOptions {
 public:
  // After JobOptions::declare on the same app: --trace-args speaks of a file of -o.
  [[nodiscard]] static std::shared_ptr<TraceOptions> declare(CLI::App& app);

  // Refuses a folder that cannot be written to; before any work is done.
  void check();
  [[nodiscard]] bool per_rank() const { return !per_rank_.empty(); }
  // Of timeline.json.
  [[nodiscard]] sim::TraceStyle style() const { return {.with_args = args_ == "full"}; }
  // The files of --trace-per-rank, if given.
  void write(const sim::JobSummary& job, const sim::Timeline& timeline) const;

 private:
  std::string per_rank_, args_ = "full";
  bool gzip_ = false;
  std::optional<sim::OutputFolder> folder_;
};

}  // namespace rehearse::cli
