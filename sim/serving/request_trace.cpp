#include "sim/serving/request_trace.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <span>
#include <system_error>

#include "config/data_dir.hpp"
#include "config/reference.hpp"
#include "sim/serving/request_reader.hpp"
#include "sim/unpacked_file.hpp"

namespace rehearse::sim {
namespace {

namespace fs = std::filesystem;

fs::path ready_made() { return fs::path(config::data_dir()) / "workloads" / "requests"; }

// A file, or lengths that are ready-made.
std::string requests_file(const config::Node& path) {
  const std::string name = path.as_string();
  std::string file = config::referenced_path(path);
  std::error_code none;
  if (name.find_first_of("./") != std::string::npos || fs::exists(file, none)) return file;
  std::vector<std::string> known;
  for (const auto& entry : fs::directory_iterator(ready_made(), none)) {
    if (entry.path().extension() != ".csv") continue;
    known.push_back(entry.path().stem().string());
    if (known.back() == name) return entry.path().string();
  }
  std::ranges::sort(known);
  path.fail(fmt::format("no file {}, and no ready-made lengths of that name", config::shown(name)), config::suggestion(name, known));
}

std::unique_ptr<std::istream> opened(const config::Node& path) {
  const std::string file = requests_file(path);
  try {
    return std::make_unique<UnpackedFile>(file);
  } catch (const config::InputError& error) {
    path.fail(error.message(), error.hint());
  }
}

std::unique_ptr<RequestReader> reader_of(const config::Node& path) {
  std::unique_ptr<std::istream> in = opened(path);
  const std::string name = requests_file(path);
  return in->peek() == '{' ? requests_of_lines(std::move(in), name) : requests_of_table(std::move(in), name);
}

// A prompt that ends within a block has a hash of that too, which says nothing of longer ones.
void add_blocks(const RequestReader& reader, const workloads::Request& request, workloads::PromptBlocks& blocks) {
  const int tokens = blocks.tokens();
  const std::vector<std::uint64_t> hashes = reader.hashes();
  const auto input = static_cast<std::size_t>(request.tokens.input), wanted = (input - 1) / static_cast<std::size_t>(tokens) + 1;
  if (hashes.size() != wanted) {
    reader.fail(fmt::format("block hashes: {}, and a prompt of {} tokens has {}, of {} tokens each", hashes.size(), request.tokens.input,
                            wanted, tokens));
  }
  blocks.add(std::span(hashes).first(input / static_cast<std::size_t>(tokens)));
}

}  // namespace

std::string settled_requests(const config::Node& path) {
  const std::string file = requests_file(path);
  return fs::path(file).parent_path() == ready_made() ? path.as_string() : fs::absolute(file).lexically_normal().string();
}

RequestTrace read_request_trace(const config::Node& path, bool needs_times, bool with_blocks) {
  const std::unique_ptr<RequestReader> reader = reader_of(path);
  if (needs_times && !reader->has_times()) reader->fail("this trace has lengths but no times", "use it with {from: FILE}");
  RequestTrace trace;
  auto blocks = with_blocks ? std::make_shared<workloads::PromptBlocks>() : nullptr;
  double first_s = 0;
  for (workloads::Request request; reader->next(request);) {
    if (trace.requests.empty()) first_s = request.arrival_s;
    request.arrival_s -= first_s;
    if (!trace.requests.empty() && request.arrival_s < trace.requests.back().arrival_s)
      reader->fail("this request comes before the one above it", "sort the lines by their times");
    trace.requests.push_back(request);
    if (blocks) add_blocks(*reader, request, *blocks);
  }
  if (trace.requests.empty()) reader->fail("the trace has no requests");
  if (reader->has_hashes() && !with_blocks) trace.note = fmt::format("block hashes of {} are not used", path.as_string());
  trace.blocks = std::move(blocks);
  return trace;
}

}  // namespace rehearse::sim
