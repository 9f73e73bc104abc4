#include <fmt/format.h>

#include <array>
#include <fstream>
#include <sstream>

#include "config/input_error.hpp"
#include "config/open_file.hpp"
#include "sim/report/json_file.hpp"
#include "sim/report/page/page.hpp"
#include "sim/report/reporter.hpp"

namespace rehearse::sim::page {
namespace {

namespace fs = std::filesystem;

// What stands for the result where there is no result.json, by the order in which it is looked for.
constexpr std::array result_files = {"result.json", "methods.json"};

// Not what is written from other files, read in a way of its own, or a large file that no section reads.
bool is_text_for_sections(std::string_view name) { return name != "timeline.json" && name != "report.html" && name != "tune.csv"; }

void take_result(Input& input, const std::string& folder) {
  for (const char* name : result_files) {
    const auto file = input.files.find(name);
    if (file == input.files.end() || !input.result.is_null()) continue;
    input.result = parse_json(file->second, folder + name, "give a folder that -o has written");
    input.files.erase(file);
  }
}

// A file that an earlier command left in the folder: what wrote the result writes no such file.
bool is_of_another_run(const std::string& file, const Input& input) {
  if (file == "history.jsonl") return input.has("/whole_job/runs") && input.at("/whole_job/runs").size() != 1;
  if (file != "timeline.json" && file != "memory.csv") return false;
  const bool of_a_step = input.has("/results/simulated") || input.has("/failure") || input.has("/kind");
  return !of_a_step && (input.has("/results") || input.has("/whole_job") || input.has("/tune"));
}

std::string content_of(const fs::path& path) {
  std::ifstream in = config::open_file(path.string());
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

}  // namespace

const std::string* Input::file(const std::string& name) const {
  const auto found = files.find(name);
  return found == files.end() ? nullptr : &found->second;
}

Input input_of(const Report& report) {
  Input input;
  for (const std::string& name : ReporterRegistry::names()) {
    const Reporter& reporter = ReporterRegistry::get(name);
    if (reporter.file_name().empty() || !is_text_for_sections(reporter.file_name()) || !reporter.applies(report)) continue;
    std::ostringstream text;
    reporter.write(report, text);
    input.files[std::string(reporter.file_name())] = text.str();
  }
  take_result(input, "");
  if (const auto* timeline = report.find<Timeline>()) input.timeline = view_of(*timeline);
  return input;
}

Input input_of(const fs::path& folder) {
  std::error_code error;
  if (!fs::is_directory(folder, error))
    throw config::InputError(fmt::format("'{}' is not a folder", folder.string()), "give one that -o has written");
  Input input;
  for (const std::string& name : ReporterRegistry::names()) {
    const std::string file(ReporterRegistry::get(name).file_name());
    if (file.empty() || !is_text_for_sections(file) || !fs::is_regular_file(folder / file, error)) continue;
    input.files[file] = content_of(folder / file);
  }
  take_result(input, folder.string() + "/");
  if (input.files.empty() && input.result.is_null()) {
    throw config::InputError(fmt::format("'{}' holds nothing that rehearse has written", folder.string()),
                             "give a folder that -o has written");
  }
  std::erase_if(input.files, [&](const auto& file) { return is_of_another_run(file.first, input); });
  if (input.has("/kind") || is_of_another_run("timeline.json", input)) return input;  // of a kind: its timeline is not of ranks
  const fs::path timeline = folder / "timeline.json";
  if (std::ifstream in(timeline, std::ios::binary); in) input.timeline = view_of(in, timeline.string());
  return input;
}

}  // namespace rehearse::sim::page
