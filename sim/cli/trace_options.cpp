#include "sim/cli/trace_options.hpp"

#include <spdlog/spdlog.h>

#include <CLI/App.hpp>

#include "sim/report/rank_traces.hpp"

namespace rehearse::cli {

std::shared_ptr<TraceOptions> TraceOptions::declare(CLI::App& app) {
  auto options = std::make_shared<TraceOptions>();
  auto* per_rank =
      app.add_option("--trace-per-rank", options->per_rank_, "Write a trace for each simulated rank (rank0.json, ...) into this folder")
          ->type_name("DIR")
          ->check(CLI::Validator([](const std::string& folder) { return folder.empty() ? "names no folder" : ""; }, ""));
  app.add_flag("--trace-gzip", options->gzip_, "Pack the files of --trace-per-rank (rank0.json.gz, ...)")->needs(per_rank);
  app.add_option("--trace-args", options->args_,
                 "'none': operations of timeline.json have names only, so that viewers which tell by the arguments add up equal names")
      ->type_name("full|none")
      ->check(CLI::IsMember({"full", "none"}))
      ->needs(app.get_option("--output"));
  return options;
}

void TraceOptions::check() {
  if (per_rank()) folder_.emplace(per_rank_);
}

void TraceOptions::write(const sim::JobSummary& job, const sim::Timeline& timeline) const {
  if (!folder_) return;
  const sim::RankTraces traces(job, timeline);
  const std::size_t files = folder_->write(traces.files(gzip_)).size();
  spdlog::info("wrote {} {} into {}", files, files == 1 ? "trace" : "traces", per_rank_);
}

}  // namespace rehearse::cli
