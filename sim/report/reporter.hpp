// Results written for people and for programs. One reporter, one .cpp with its registration; nothing else in the program prints results.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>
#include <string_view>
#include <vector>

#include "config/registry.hpp"
#include "sim/compare/compare.hpp"
#include "sim/compare/explain.hpp"
#include "sim/job/job.hpp"
#include "sim/result.hpp"

namespace rehearse::sim {

struct LoneCollective;
struct WholeJobReport;
struct MethodResult;

// What a report says about the job.
struct JobSummary {
  std::string name, model, cluster, gpu;
  std::string layout;  // "tp 8, pp 4, dp 4, 1f1b, zero1"
  std::string batch;   // "512 sequences of 4096, micro-batch 1"
  int gpus = 0;
  double gpu_memory_bytes = 0;
  std::uint64_t seed = 0;
  std::string input_hash;
  std::string resolved_yaml;
  std::vector<std::string> faults = {};  // of the simulated step, one by one; what was drawn at random is written out
};

[[nodiscard]] JobSummary summary_of(const Job& job);

// Everything one command found out. Nothing is owned; what is absent is null.
struct Report {
  JobSummary job = {};
  std::vector<const StepResult*> results = {};
  const Timeline* timeline = nullptr;
  const Aftermath* aftermath = nullptr;
  const Comparison* comparison = nullptr;
  const Explanation* explanation = nullptr;
  const std::vector<FeatureEffect>* effects = nullptr;
  const WholeJobReport* whole_job = nullptr;
  const std::vector<MethodResult>* methods = nullptr;
  const std::vector<LoneCollective>* collectives = nullptr;  // each alone; of the job only its name and gpus are told
  bool colour = false;                                       // the console only
};

class Reporter {
 public:
  static constexpr std::string_view kind = "reporter";
  virtual ~Reporter() = default;

  // Name of the file in the -o folder; "" when it is never written there.
  [[nodiscard]] virtual std::string_view file_name() const = 0;
  // Whether the report holds what this reporter shows.
  [[nodiscard]] virtual bool applies(const Report& report) const = 0;
  // The same report gives the same bytes. Errors of the stream are the caller's to check.
  virtual void write(const Report& report, std::ostream& out) const = 0;
};

using ReporterRegistry = config::Registry<Reporter>;

}  // namespace rehearse::sim
