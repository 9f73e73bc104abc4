// simulate --collective: one collective alone on a cluster, or on the cluster of a job.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "sim/cli/job_options.hpp"
#include "sim/engine/lone_collective.hpp"

namespace rehearse::cli {

class CollectiveOptions {
 public:
  [[nodiscard]] static std::shared_ptr<CollectiveOptions> declare(CLI::App& app);

  [[nodiscard]] bool given() const { return !kind_.empty(); }
  // The cluster, or the job's, and how many GPUs of it take part.
  [[nodiscard]] sim::Job load(JobOptions& options) const;
  // One result for every size.
  [[nodiscard]] std::vector<sim::LoneCollective> run(const sim::Job& job) const;

 private:
  void refuse_another(const sim::LoneCollective& one) const;
  std::string kind_, size_, gpus_, algorithm_;
};

// "128MiB", "8" (bytes), or a range from the smaller to the larger by doubling: "8..8GiB". Throws config::InputError.
[[nodiscard]] std::vector<double> parse_sizes(const std::string& text);

}  // namespace rehearse::cli
