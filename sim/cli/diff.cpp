// `rehearse diff A B`: two jobs, or what two commands have found out about them.
#include <spdlog/spdlog.h>

#include <CLI/App.hpp>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>

#include "sim/analytic/predict.hpp"
#include "sim/cli/command.hpp"
#include "sim/cli/job_options.hpp"
#include "sim/cli/terminal.hpp"
#include "sim/compare/difference.hpp"
#include "sim/compare/kind_difference.hpp"
#include "sim/kind/job_kind.hpp"
#include "sim/memory/allocator_peaks.hpp"
#include "sim/report/diff.hpp"
#include "sim/report/job_head.hpp"
#include "sim/report/json_file.hpp"
#include "sim/report/reporter.hpp"

namespace rehearse::cli {
namespace {

namespace fs = std::filesystem;
using json = nlohmann::ordered_json;

struct DiffOptions {
  std::string a, b, price;
  bool as_json = false;
};

// What a side says of itself: a job by formula, or the results that a folder holds.
struct Side {
  std::string name;
  config::Node job;
  std::vector<sim::StepNumbers> methods;
};

sim::StepNumbers numbers_of(const std::string& method, const json& result, int gpus) {
  sim::StepNumbers numbers{.method = method, .gpus = gpus, .step_s = result.at("step_s"), .tokens_per_s = result.at("tokens_per_s")};
  for (std::size_t i = 0; i < sim::phase_count; ++i) {
    numbers.mean.seconds[i] = result.at("mean_phases_s").value(std::string(sim::key_of(static_cast<sim::Phase>(i))), 0.0);
  }
  numbers.fits = result.at("memory").at("fits");
  for (const json& rank : result.at("memory").at("ranks")) {
    if (rank.at("needed_bytes").get<double>() <= numbers.needed_bytes) continue;
    numbers.needed_bytes = rank.at("needed_bytes");
    numbers.capacity_bytes = rank.at("capacity_bytes");
  }
  return numbers;
}

constexpr const char* what_diff_takes = "diff takes jobs, and what predict, simulate and compare have written";

json result_in(const std::string& folder) {
  const std::string path = (fs::path(folder) / "result.json").string();
  std::ifstream in(path, std::ios::binary);
  if (!in) throw config::InputError("'" + folder + "' holds no result.json", "give a job, or a folder that -o has written");
  json result = sim::parse_json({std::istreambuf_iterator<char>(in), {}}, path, what_diff_takes);
  const json format = result.is_object() ? result.value("format", json()) : json();
  if (format != sim::result_format) {
    throw config::InputError(fmt::format("{}: format {}, this program reads {}", path, format.dump(), sim::result_format),
                             "CHANGELOG.md says what changed");
  }
  return result;
}

config::Node job_in(const std::string& folder) { return config::Node::load_file((fs::path(folder) / "resolved-job.yaml").string()); }

Side side_of_folder(const std::string& folder) {
  const json result = result_in(folder);
  Side side{folder, job_in(folder), {}};
  try {
    for (const auto& [method, numbers] : result.at("results").items())
      side.methods.push_back(numbers_of(method, numbers, result.at("job").at("gpus")));
  } catch (const json::exception& error) {
    throw config::InputError(fmt::format("{}/result.json is not the result of a step: {}", folder, sim::reason_of(error)), what_diff_takes);
  }
  return side;
}

Side side_of_job(const std::string& path) {
  const sim::Job job = sim::load_job(job_named(path));
  const workloads::Compiled compiled = workloads::compile(job.workload);
  const sim::StepResult result = sim::with_allocator(job, compiled, sim::predict(job, compiled));
  return {job.name, job.resolved.document(), {sim::numbers_of(result, job.system.gpus)}};
}

bool is_folder(const std::string& text) {
  std::error_code ignored;
  return fs::is_directory(text, ignored);
}

Side side_of(const std::string& text) { return is_folder(text) ? side_of_folder(text) : side_of_job(text); }

std::string kind_of_side(const std::string& text) { return is_folder(text) ? sim::kind_of(job_in(text)) : sim::kind_of(job_named(text)); }

// A job of another kind is predicted.
sim::KindSide kind_side_of(const std::string& text) {
  const std::string kind = kind_of_side(text);
  if (is_folder(text)) return {text, kind, job_in(text), result_in(text)};
  if (kind.empty()) return {text, kind, {}, {}};
  const sim::KindRequest request = sim::kind_request(job_named(text));
  const sim::KindAnswer answer = sim::kind_with_answer(kind, "predict").answer("predict", request);
  std::ostringstream result;
  json_reporter(answer.report).write(answer.report, result);
  return {request.name, kind, config::Node::load_text(answer.report.job.resolved_yaml, text), json::parse(result.str())};
}

// The simulation where both have one, else what else both have.
const sim::StepNumbers* of_method(const Side& side, std::string_view method) {
  for (const sim::StepNumbers& numbers : side.methods) {
    if (numbers.method == method) return &numbers;
  }
  return nullptr;
}

sim::Difference difference_of(const Side& a, const Side& b) {
  for (const std::string_view method : {"simulated", "analytic", "critical path"}) {
    const sim::StepNumbers* of_a = of_method(a, method);
    const sim::StepNumbers* of_b = of_method(b, method);
    if (of_a != nullptr && of_b != nullptr) return sim::difference_of({a.name, a.job, *of_a}, {b.name, b.job, *of_b});
  }
  throw config::InputError(fmt::format("'{}' and '{}' have no method in common: one is simulated, the other by formula", a.name, b.name),
                           "rehearse compare JOB -o DIR writes both");
}

double price_of(const std::string& text) {
  double price = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), price);
  if (text.empty()) return 0;
  if (error == std::errc() && end == text.data() + text.size() && std::isfinite(price) && price > 0) return price;
  throw config::InputError("--price takes a number above 0, not '" + text + "'", "for example --price 2.5");
}

Exit print_difference(sim::Report report, const DiffOptions& options) {
  report.colour = colour_allowed(Stream::out);
  std::ostringstream text;
  (options.as_json ? json_reporter(report) : console_reporter(report)).write(report, text);
  print_result(text.str());
  return Exit::fine;
}

Exit diff(const DiffOptions& options) {
  const sim::GpuHourPrice price{price_of(options.price)};
  if (!kind_of_side(options.a).empty() || !kind_of_side(options.b).empty()) {
    if (price.price > 0) throw config::InputError("--price is for training jobs");
    const sim::KindDifference difference = sim::difference_of(kind_side_of(options.a), kind_side_of(options.b));
    return print_difference(sim::Report({}, "diff-kinds-").add(&difference), options);
  }
  const Side a = side_of(options.a);
  const sim::Difference difference = difference_of(a, side_of(options.b));
  return print_difference(sim::Report({}, "diff-").add(&difference).add(&price), options);
}

class Diff final : public Command {
 public:
  [[nodiscard]] std::string_view summary() const override {
    return "Two jobs or two results side by side: what differs, and what that does";
  }
  [[nodiscard]] std::string_view examples() const override {
    return "Examples:\n"
           "  rehearse diff llama2-70b-128-a100 llama2-70b-256-a100          two jobs, by formula\n"
           "  rehearse diff out-before out-after --price 2.5                 two folders that -o has written\n"
           "  rehearse diff serve-llama3-70b-apart serve-llama3-70b-together two deployments under a load\n";
  }
  [[nodiscard]] Action declare(CLI::App& app) const override {
    auto options = std::make_shared<DiffOptions>();
    app.add_option("A", options->a, "A job (a file or a name), or a folder that -o has written")->required();
    app.add_option("B", options->b, "The other")->required();
    app.add_option("--price", options->price, "What a GPU costs an hour, in any currency: what 10^9 tokens cost follows")->type_name("N");
    app.add_flag("--json", options->as_json, "Print JSON instead of tables");
    return [options] { return diff(*options); };
  }
};

const CommandRegistry::Registration<Diff> diff_registration("diff");

}  // namespace
}  // namespace rehearse::cli
