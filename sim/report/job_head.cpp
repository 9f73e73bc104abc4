#include "sim/report/job_head.hpp"

#include <fmt/ostream.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <span>

#include "sim/report/version.hpp"

namespace rehearse::sim {

namespace {

void print_faults(const JobSummary& job, std::ostream& out) {
  constexpr std::size_t most_named = 4;
  const std::size_t count = job.faults.size();
  if (count == 0) return;
  const auto shown = std::span(job.faults).first(std::min(count, most_named));
  fmt::print(out, "{}{}\n", fmt::join(shown, ", "), count > most_named ? fmt::format(", ... ({} faults, seed {})", count, job.seed) : "");
}

}  // namespace

void print_job(const JobSummary& job, std::ostream& out) {
  fmt::print(out, "{}: {} on {} x {} ({})\n", job.name, job.model, job.gpus, job.gpu, job.cluster);
  fmt::print(out, "{}; {}\n", job.layout.empty() ? "one GPU" : job.layout, job.batch);
  print_faults(job, out);
}

nlohmann::ordered_json head_json(const JobSummary& job) {
  nlohmann::ordered_json head = {{"format", result_format},
                                 {"version", version()},
                                 {"job",
                                  {{"name", job.name},
                                   {"model", job.model},
                                   {"cluster", job.cluster},
                                   {"gpu", job.gpu},
                                   {"gpus", job.gpus},
                                   {"layout", job.layout},
                                   {"batch", job.batch}}},
                                 {"seed", job.seed},
                                 {"input_hash", job.input_hash}};
  if (!job.faults.empty()) head["faults"] = job.faults;
  return head;
}

}  // namespace rehearse::sim
