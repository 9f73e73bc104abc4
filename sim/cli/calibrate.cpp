// rehearse calibrate: files of one's own GPU, cluster and stack, from what one measured.
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <CLI/App.hpp>
#include <ostream>
#include <sstream>

#include "sim/calibrate/measured_steps.hpp"
#include "sim/calibrate/network_fit.hpp"
#include "sim/cli/calibrate.hpp"
#include "sim/cli/terminal.hpp"
#include "sim/report/whole_file.hpp"

namespace rehearse::cli {

std::string rendered(const sim::Table& table) {
  std::ostringstream text;
  table.print(text);
  return text.str();
}

std::string parameter_table(const std::vector<sim::FitParameter>& parameters, const std::vector<sim::FittedParameter>& fitted) {
  sim::Table table{{{"parameter", sim::Align::left}, {"before"}, {"after"}, {"told"}, {"", sim::Align::left}}};
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    table.rows.push_back({parameters[i].key, parameters[i].text(parameters[i].value), parameters[i].text(fitted[i].value),
                          fmt::format("{:.0f} %", 100 * fitted[i].told), fitted[i].fitted ? "" : "stays: not told by this"});
  }
  return rendered(table);
}

// Of no file asked for everything is fitted, and only told.
sim::FittedParts parts_of(const CalibrateOptions& options) {
  const bool none = options.gpu.empty() && options.cluster.empty() && options.software.empty();
  return {none || !options.gpu.empty(), none || !options.cluster.empty(), none || !options.software.empty()};
}

std::vector<File> files_of(const CalibrateOptions& options, const sim::JobParts& parts, const sim::Settings& settings) {
  std::vector<File> files;
  const auto add = [&](const std::string& path, const sim::PartKind& kind, const sim::Part& part, const char* prefix) {
    if (!path.empty()) files.push_back({path, sim::fitted_part(kind, part, prefix, settings)});
  };
  add(options.gpu, sim::gpu_part, parts.gpu, "cluster.gpu.");
  add(options.cluster, sim::cluster_part, parts.cluster, "cluster.");
  add(options.software, sim::software_part, parts.software, "software.");
  return files;
}

Exit deliver(const CalibrateOptions& options, const std::string& told, const std::vector<File>& files) {
  sim::SignalsHeld signals;
  sim::WholeFiles whole(signals);
  for (const File& file : files) {
    const std::string text = fmt::format("# rehearse calibrate {}\n{}", options.what, file.document.to_yaml());
    whole.write(file.path, [&](std::ostream& out) { out << text; });
  }
  print_result(told);
  for (const std::string& path : whole.put_in_place()) spdlog::info("wrote {}", path);
  return Exit::fine;
}

std::string stack_of(const CalibrateOptions& options) { return options.stack.empty() ? "megatron-core" : options.stack; }

void refuse_option(const std::string& given, const char* option, const char* what) {
  if (!given.empty()) throw config::InputError(fmt::format("{} has nothing to do with calibrate {}", option, what));
}

namespace {

Exit from_steps(const CalibrateOptions& options) {
  refuse_option(options.job, "--job", "steps");
  refuse_option(options.from, "--from", "steps");
  const sim::StepCalibration out = sim::calibrate_to_steps(sim::read_cases(options.files), parts_of(options));
  std::string told = parameter_table(out.parameters, out.fitted) + '\n';
  sim::Table errors{{{"mean absolute error of the step", sim::Align::left}, {"cases"}, {"before"}, {"after"}}};
  const auto add = [&](const char* half, const sim::ErrorBeforeAfter& error) {
    errors.rows.push_back(
        {half, fmt::format("{}", error.cases), fmt::format("{:.1f} %", error.before_pct), fmt::format("{:.1f} %", error.after_pct)});
  };
  add("fitted to", out.taken);
  add("left out", out.left_out);
  told += rendered(errors);
  for (const std::string& skipped : out.skipped) told += "left aside: " + skipped + '\n';
  return deliver(options, told, files_of(options, out.parts, out.settings));
}

Exit from_tables(const CalibrateOptions& options) {
  refuse_option(options.job, "--job", "network");
  refuse_option(options.gpu, "--gpu", "network");
  refuse_option(options.software, "--software", "network");
  if (options.from.empty())
    throw config::InputError("calibrate network needs a cluster to begin with", "--from dgx-h100-ndr400 (rehearse list clusters)");
  const sim::NetworkCalibration out = sim::calibrate_to_collectives(
      sim::collectives_of_tables(options.files), config::Node::scalar(options.from), config::Node::scalar(stack_of(options)));
  sim::Table tables{{{"table", sim::Align::left}, {"", sim::Align::left}, {"ranks"}, {"hosts"}, {"rows"}, {"error before"}, {"after"}}};
  for (const sim::CollectiveError& table : out.errors) {
    tables.rows.push_back({table.source, table.collective, fmt::format("{}", table.ranks), fmt::format("{}", table.hosts),
                           fmt::format("{}", table.rows), fmt::format("{:.1f} %", table.before_pct),
                           fmt::format("{:.1f} %", table.after_pct)});
  }
  std::vector<File> files;
  if (!options.cluster.empty()) files.push_back({options.cluster, out.cluster});
  return deliver(options, parameter_table(out.parameters, out.fitted) + '\n' + rendered(tables), files);
}

Exit calibrate(const CalibrateOptions& options) {
  if (options.what == "steps") return from_steps(options);
  if (options.what == "network") return from_tables(options);
  if (options.what == "trace") return calibrate_to_traces(options);
  throw config::InputError("calibrate knows no " + config::shown(options.what),
                           config::suggestion(options.what, {"network", "steps", "trace"}));
}

class Calibrate final : public Command {
 public:
  [[nodiscard]] std::string_view summary() const override { return "Make files of one's own GPU, cluster and stack from measurements"; }
  [[nodiscard]] std::string_view examples() const override {
    return "What it takes:\n"
           "  steps     case files with measured steps (docs/validation.md): half is fitted to, the other half shows what that is worth\n"
           "  network   tables that nccl-tests print, on one node and on several\n"
           "  trace     traces of PyTorch's profiler (.json, .json.gz): classes of kernels, contention, shapes, collectives; what they\n"
           "            say of a GPU and a network, with --job of a stack\n"
           "\nExamples:\n"
           "  rehearse calibrate steps my-cases.yaml --gpu my-gpu.yaml --software my-stack.yaml\n"
           "  rehearse calibrate network 1-node.txt 4-nodes.txt --from dgx-h100-ndr400 --cluster my-cluster.yaml\n"
           "  rehearse calibrate trace rank0.json --job job.yaml --gpu my-gpu.yaml\n"
           "  rehearse calibrate trace rank*.json --from dgx-h100-ndr400 --gpu my-gpu.yaml --cluster my-cluster.yaml\n";
  }
  [[nodiscard]] Action declare(CLI::App& app) const override {
    auto options = std::make_shared<CalibrateOptions>();
    app.add_option("WHAT", options->what, "steps, network or trace (below)")->required();
    app.add_option("FILE", options->files, "What was measured")->required();
    app.add_option("--gpu", options->gpu, "Fit the GPU and write it into this file")->type_name("FILE");
    app.add_option("--cluster", options->cluster, "Fit the cluster and write it into this file")->type_name("FILE");
    app.add_option("--software", options->software, "Fit the software stack and write it into this file")->type_name("FILE");
    app.add_option("--from", options->from, "network, trace: the cluster to begin with, a file or a ready-made name")->type_name("CLUSTER");
    app.add_option("--stack", options->stack, "network, trace without a job: whose collectives were measured; default megatron-core")
        ->type_name("NAME");
    app.add_option("--job", options->job, "trace: the job that was traced, a file or a ready-made name")->type_name("JOB");
    app.add_option("--set", options->sets, "trace: set a key of that job; may be given several times")
        ->type_name("KEY=VALUE")
        ->allow_extra_args(false);
    return [options] { return calibrate(*options); };
  }
};

const CommandRegistry::Registration<Calibrate> calibrate_registration("calibrate");

}  // namespace
}  // namespace rehearse::cli
