// rehearse import: another program's file as a document of ours.
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <CLI/App.hpp>
#include <algorithm>
#include <cctype>
#include <filesystem>
#include <ostream>

#include "config/input_error.hpp"
#include "sim/cli/command.hpp"
#include "sim/cli/number.hpp"
#include "sim/cli/set_option.hpp"
#include "sim/cli/terminal.hpp"
#include "sim/import/finish.hpp"
#include "sim/import/importer.hpp"
#include "sim/job/limits.hpp"
#include "sim/report/whole_file.hpp"

namespace rehearse::cli {
namespace {

using sim::Draft;

struct ImportOptions {
  std::string format, file, output, cluster, gpus, part;
  std::vector<std::string> sets, variables;
};

// The keys that the command line gives, in its order.
std::vector<std::pair<std::string, std::string>> settings_of(const ImportOptions& options) {
  std::vector<std::pair<std::string, std::string>> all;
  if (!options.cluster.empty()) all.emplace_back("cluster", options.cluster);
  if (!options.gpus.empty()) all.emplace_back("gpus", options.gpus);
  for (const std::string& text : options.sets) all.push_back(parse_set(text));
  return all;
}

// What the format has no use for is refused, not passed over.
sim::ImportRequest request_of(const ImportOptions& options, const sim::Importer& importer) {
  sim::ImportRequest request{options.file, options.part, {}};
  if (!options.part.empty() && !importer.has_parts())
    throw config::InputError(fmt::format("--part: a file of {} has no parts", options.format));
  if (!options.variables.empty() && !importer.has_variables())
    throw config::InputError(fmt::format("--variable: a file of {} reads no variables", options.format));
  if (!options.gpus.empty()) request.gpus = parse_count("--gpus", options.gpus, 1, sim::most_gpus);
  for (const std::string& text : options.variables) {
    const std::size_t equals = text.find('=');
    const std::string name = text.substr(0, equals);
    const bool fits = equals != std::string::npos && !name.empty() &&
                      std::ranges::all_of(name, [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; });
    if (!fits) throw config::InputError(fmt::format("--variable {} is not NAME=VALUE", config::shown(text)), "for example --variable TP=4");
    request.variables[name] = text.substr(equals + 1);
  }
  return request;
}

std::string notes(const Draft& draft) {
  std::string text;
  const auto add = [&](std::string_view what, const std::vector<std::string>& lines) {
    for (const std::string& line : lines) text += fmt::format("{}: {}\n", what, line);
  };
  add("inferred", draft.inferred);
  add("left out, may matter", draft.not_understood);
  std::string quiet;
  for (const std::string& name : draft.without_effect) quiet += (quiet.empty() ? "" : ", ") + name;
  if (!quiet.empty()) text += "without effect: " + quiet + '\n';
  return text;
}

std::string commented(const std::string& text) {
  std::string out;
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    out += "# " + text.substr(at, end - at) + '\n';
    at = end + 1;
  }
  return out;
}

std::string stem_of(const ImportOptions& options) {
  const std::filesystem::path path(options.output.empty() ? options.file : options.output);
  return path.stem().string();
}

Exit import_command(const ImportOptions& options) {
  const sim::Importer& importer = sim::ImporterRegistry::get(options.format);
  const Draft draft = importer.read(request_of(options, importer));
  const auto [document, summary] = sim::finish_import(draft, settings_of(options), stem_of(options));
  const std::string told = notes(draft);
  const std::string file = std::filesystem::path(options.file).filename().string();
  const std::string text = fmt::format("# rehearse import {} {}\n", options.format, file) + commented(told) + document.to_yaml();
  if (options.output.empty()) {
    print_result(text);
    spdlog::info("{}", summary);
    return Exit::fine;
  }
  sim::SignalsHeld signals;
  sim::WholeFiles files(signals);
  files.write(options.output, [&](std::ostream& out) { out << text; });
  print_result(summary + '\n' + told);
  for (const std::string& path : files.put_in_place()) spdlog::info("wrote {}", path);
  return Exit::fine;
}

class Import final : public Command {
 public:
  [[nodiscard]] std::string_view summary() const override { return "Make a job, model or cluster out of another program's file"; }
  [[nodiscard]] std::string_view examples() const override {
    static const std::string text = [] {
      std::string all = "Formats:\n";
      for (const std::string& name : sim::ImporterRegistry::names()) {
        all += fmt::format("  {:<16} {}\n", name, sim::ImporterRegistry::get(name).summary());
      }
      return all +
             "\nExamples:\n"
             "  rehearse import hf config.json -o model.yaml\n"
             "  rehearse import megatron train.sh --cluster dgx-h100-ndr400 -o job.yaml\n"
             "  rehearse import torchtitan llama3_70b.toml --cluster dgx-h100-ndr400 --gpus 256 -o job.yaml\n"
             "  rehearse import nvidia-smi topo.txt -o cluster.yaml\n";
    }();
    return text;
  }
  [[nodiscard]] Action declare(CLI::App& app) const override {
    auto options = std::make_shared<ImportOptions>();
    app.add_option("FORMAT", options->format, "Whose file it is (below)")->required();
    app.add_option("FILE", options->file, "The file")->required();
    app.add_option("-o,--output", options->output, "Write the document here; default, and -: standard output")->type_name("FILE");
    app.add_option("--cluster", options->cluster, "Of a job: the cluster, a file or a ready-made name (rehearse list clusters)");
    app.add_option("--gpus", options->gpus, "Of a job: how many")->type_name("N");
    app.add_option("--part", options->part, "Of a file with several jobs: which, e.g. h100/num_gpus_64/bf16")->type_name("PATH");
    app.add_option("--variable", options->variables,
                   "Of a script, or of ${NAME} in a file: a variable that is set when it runs, e.g. TP=4; may be given several times")
        ->type_name("NAME=VALUE")
        ->allow_extra_args(false);
    app.add_option("--set", options->sets, "Give or change a key of the document, e.g. model.vocab=32000; may be given several times")
        ->type_name("KEY=VALUE")
        ->allow_extra_args(false);
    return [options] {
      if (options->output == "-") options->output.clear();  // standard output
      return import_command(*options);
    };
  }
};

const CommandRegistry::Registration<Import> import_registration("import");

}  // namespace
}  // namespace rehearse::cli
