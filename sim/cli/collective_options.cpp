#include "sim/cli/collective_options.hpp"

#include <fmt/format.h>

#include <CLI/App.hpp>
#include <cmath>

#include "config/quantity.hpp"
#include "sim/cli/number.hpp"
#include "sim/job/limits.hpp"
#include "workloads/collective.hpp"

namespace rehearse::cli {
namespace {

using workloads::CollectiveKind;

constexpr double largest_bytes = 1e15;
constexpr int most_exchanging = 8192;  // GPUs of an all-to-all: what it holds grows with their square, 3 GB here
constexpr const char* default_size = "128MiB";

std::vector<std::pair<std::string, CollectiveKind>> kinds() {
  std::vector<std::pair<std::string, CollectiveKind>> out;
  for (const auto kind : {CollectiveKind::all_reduce, CollectiveKind::all_gather, CollectiveKind::reduce_scatter, CollectiveKind::broadcast,
                          CollectiveKind::all_to_all, CollectiveKind::send_recv}) {
    out.emplace_back(name_of(kind), kind);
  }
  return out;
}

CollectiveKind kind_of(const std::string& text) {
  std::vector<std::string> names;
  for (const auto& [name, kind] : kinds()) {
    if (name == text) return kind;
    names.push_back(name);
  }
  throw config::InputError("unknown collective '" + text + "'", config::suggestion(text, names));
}

// A number without a unit is bytes, as for nccl-tests.
double parse_size(const std::string& text) {
  const bool bare = !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
  std::string why;
  const std::optional<double> bytes = config::parse_quantity(bare ? text + " B" : text, config::Dimension::bytes, why);
  if (!bytes) throw config::InputError(fmt::format("--size '{}': {}", text, why), "write 128MiB, or 8..8GiB for a table");
  if (*bytes < 1 || *bytes > largest_bytes) throw config::InputError(fmt::format("--size must be between 1 B and 1 PB, not '{}'", text));
  return std::floor(*bytes);
}

void check_algorithm(const std::string& name) {
  std::vector<std::string> known = workloads::CollectiveRegistry::names();
  known.insert(known.begin(), "auto");
  if (std::ranges::find(known, name) == known.end()) {
    throw config::InputError("unknown algorithm '" + name + "'", config::suggestion(name, known));
  }
}

}  // namespace

std::vector<double> parse_sizes(const std::string& text) {
  constexpr std::string_view to = "..";
  const std::size_t at = text.find(to);
  if (at == std::string::npos) return {parse_size(text)};
  const double first = parse_size(text.substr(0, at)), last = parse_size(text.substr(at + to.size()));
  if (first > last) throw config::InputError(fmt::format("--size '{}' goes from the larger to the smaller size", text));
  std::vector<double> sizes{first};
  while (sizes.back() * 2 <= last) sizes.push_back(sizes.back() * 2);
  return sizes;
}

std::shared_ptr<CollectiveOptions> CollectiveOptions::declare(CLI::App& app) {
  auto options = std::make_shared<CollectiveOptions>();
  CLI::Option* kind =
      app.add_option("--collective", options->kind_, "Simulate one collective alone; JOB may then be a cluster")->type_name("KIND");
  app.add_option("--size", options->size_, "Of its buffer as nccl-tests count it, or a range that doubles, 8..8GiB; default: 128MiB")
      ->type_name("SIZE")
      ->needs(kind);
  app.add_option("--gpus", options->gpus_, "The first N GPUs; default: the job's, or the whole cluster, or one domain of it")
      ->type_name("N")
      ->needs(kind);
  app.add_option("--algorithm", options->algorithm_, "Its algorithm (rehearse list collectives); default: the fastest of the software's")
      ->type_name("NAME")
      ->needs(kind);
  return options;
}

// In a step an algorithm runs wherever it serves the group; of one call somebody wants to see that one.
void CollectiveOptions::refuse_another(const sim::LoneCollective& one) const {
  if (algorithm_.empty() || algorithm_ == "auto" || one.algorithm == algorithm_ || one.gpus == 1) return;
  throw config::InputError(fmt::format("--algorithm {} does not serve {} among {} GPUs of this cluster", algorithm_, kind_, one.gpus),
                           fmt::format("without it {} runs", one.algorithm));
}

sim::Job CollectiveOptions::load(JobOptions& options) const {
  const int gpus = gpus_.empty() ? 0 : parse_count("--gpus", gpus_, 1, sim::most_gpus);
  sim::Job job = options.names_cluster() ? options.load_cluster(gpus) : options.load();
  if (!options.names_cluster()) job = one_group(job, gpus > 0 ? gpus : job.system.gpus);
  if (!algorithm_.empty()) {
    check_algorithm(algorithm_);
    job.system.simulation.algorithm = algorithm_;
  }
  return job;
}

std::vector<sim::LoneCollective> CollectiveOptions::run(const sim::Job& job) const {
  const CollectiveKind kind = kind_of(kind_);
  if (kind == CollectiveKind::all_to_all && job.system.gpus > most_exchanging) {
    throw config::InputError(fmt::format("--collective all-to-all among {} GPUs is a message of each to each", job.system.gpus),
                             fmt::format("--gpus of {} at most", most_exchanging));
  }
  std::vector<sim::LoneCollective> results;
  for (const double bytes : parse_sizes(size_.empty() ? default_size : size_)) {
    results.push_back(run_alone(job, kind, bytes));
    refuse_another(results.back());
  }
  return results;
}

}  // namespace rehearse::cli
