#include <fmt/format.h>

#include "config/fnv.hpp"
#include "sim/federated/job.hpp"

namespace rehearse::federated {
sim::JobSummary summary_of(const Job& job) {
  sim::JobSummary out;
  const Settings& settings = job.settings;
  out.name = job.name;
  out.model = job.model.name;
  out.cluster = "split-federated";
  out.layout = fmt::format("{} device{}, server {} ({})", job.devices.size(), job.devices.size() == 1 ? "" : "s",
                           config::human_quantity(settings.server.flop_per_s, config::Dimension::compute_rate),
                           job_keys().write(settings).find_path("federated.server.mode")->as_string());
  out.batch = fmt::format("batches of {} samples, {} epoch{} a round", settings.batch, settings.epochs, settings.epochs == 1 ? "" : "s");
  out.seed = settings.seed;
  out.resolved_yaml = job_keys().write(settings).to_yaml();
  out.input_hash = config::fnv1a(out.resolved_yaml);
  return out;
}

}  // namespace rehearse::federated
