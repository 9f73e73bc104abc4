// rehearse export: a job as another program's file.
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <CLI/App.hpp>
#include <filesystem>
#include <sstream>

#include "sim/cli/command.hpp"
#include "sim/cli/set_option.hpp"
#include "sim/cli/terminal.hpp"
#include "sim/export/exporter.hpp"
#include "sim/export/left_out.hpp"
#include "sim/report/whole_file.hpp"

namespace rehearse::cli {
namespace {

struct ExportOptions {
  std::string format, job, output;
  std::vector<std::string> sets;
};

sim::Job load(const ExportOptions& options) {
  sim::JobRequest request{options.job, {}, {}};
  for (const std::string& text : options.sets) request.sets.push_back(parse_set(text));
  return sim::load_job(request);
}

std::string quoted(const std::string& value) {
  return value.find_first_of(" {}[]*'\"$&|;()<>#") == std::string::npos ? value : "'" + value + "'";
}

// What the file does not say, as a line that says it when the file is imported.
std::string notes(const sim::ReadBack& back) {
  constexpr std::size_t longest = 120;
  std::string text;
  for (const auto& [key, value] : back.left_out) {
    text += fmt::format("not in the file: {}\n", value.size() > longest ? key + " (long)" : "--set " + quoted(key + '=' + value));
  }
  for (const std::string& key : back.otherwise) text += fmt::format("otherwise in the file: {}\n", key);
  return text;
}

void write_files(const std::vector<sim::ExportedFile>& exported, const std::string& output) {
  const std::filesystem::path place(output);
  sim::SignalsHeld signals;
  sim::WholeFiles files(signals);
  const bool folder = !exported.front().name.empty();
  if (folder) std::filesystem::create_directories(place);
  for (const sim::ExportedFile& file : exported) files.write((folder ? place / file.name : place).string(), file.write);
  const std::vector<std::string> paths = files.put_in_place();
  if (folder) return spdlog::info("wrote {} files to {}", paths.size(), output);
  spdlog::info("wrote {}", output);
}

Exit export_command(const ExportOptions& options) {
  const sim::Exporter& exporter = sim::ExporterRegistry::get(options.format);
  const sim::Job job = load(options);
  const std::vector<sim::ExportedFile> files = exporter.files(job);
  const bool one = files.size() == 1 && files.front().name.empty();
  if (!one && options.output.empty()) throw config::InputError("this format is a folder of files", "give it: -o FOLDER");
  std::string told;
  if (one) {
    std::ostringstream text;
    files.front().write(text);
    if (!exporter.read_by().empty()) told = notes(sim::read_back(job, std::string(exporter.read_by()), text.str()));
    if (options.output.empty()) print_result(text.str());
  }
  if (options.output.empty()) {
    if (!told.empty()) spdlog::info("{}", told.substr(0, told.size() - 1));
    return Exit::fine;
  }
  write_files(files, options.output);
  print_result(told);
  return Exit::fine;
}

class Export final : public Command {
 public:
  [[nodiscard]] std::string_view summary() const override { return "Write a job as another program's file"; }
  [[nodiscard]] std::string_view examples() const override {
    static const std::string text = [] {
      std::string all = "Formats:\n";
      for (const std::string& name : sim::ExporterRegistry::names())
        all += fmt::format("  {:<16} {}\n", name, sim::ExporterRegistry::get(name).summary());
      return all +
             "\nExamples:\n"
             "  rehearse export megatron llama3-70b-64-h100 -o train.sh\n"
             "  rehearse export torchtitan job.yaml --set software=torchtitan -o job.toml\n"
             "  rehearse export hf llama3-70b-64-h100 -o config.json\n";
    }();
    return text;
  }
  [[nodiscard]] Action declare(CLI::App& app) const override {
    auto options = std::make_shared<ExportOptions>();
    app.add_option("FORMAT", options->format, "Whose file to write (below)")->required();
    app.add_option("JOB", options->job, "A job file, or the name of a ready-made job (rehearse list jobs)")->required();
    app.add_option("-o,--output", options->output, "Write it here; default, and -: standard output")->type_name("FILE");
    app.add_option("--set", options->sets, "Change a key of the job, e.g. parallel.tp=4; may be given several times")
        ->type_name("KEY=VALUE")
        ->allow_extra_args(false);
    return [options] {
      if (options->output == "-") options->output.clear();  // standard output
      return export_command(*options);
    };
  }
};

const CommandRegistry::Registration<Export> export_registration("export");

}  // namespace
}  // namespace rehearse::cli
