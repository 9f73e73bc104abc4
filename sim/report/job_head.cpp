#include "sim/report/job_head.hpp"

#include <fmt/ostream.h>

#include "sim/report/version.hpp"

namespace rehearse::sim {

void print_job(const JobSummary& job, std::ostream& out) {
  fmt::print(out, "{}: {} on {} x {} ({})\n", job.name, job.model, job.gpus, job.gpu, job.cluster);
  fmt::print(out, "{}; {}\n", job.layout.empty() ? "one GPU" : job.layout, job.batch);
}

nlohmann::ordered_json head_json(const JobSummary& job) {
  constexpr int format = 1;  // of result.json: raised when a key changes its meaning or goes away
  return {{"format", format},
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
}

}  // namespace rehearse::sim
