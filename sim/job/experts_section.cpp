// The job's `moe` section.
#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <span>
#include <tuple>

#include "config/reference.hpp"
#include "sim/job/names.hpp"
#include "sim/job/section.hpp"
#include "sim/job/sections.hpp"

namespace rehearse::sim {
namespace {

using config::Node;
using workloads::ExpertPlan;
using workloads::RoutedTokens;

constexpr std::int64_t most_rows = std::int64_t{1} << 31U;
constexpr double most_tokens = 1e15;
constexpr int most_chunks = 1024;
constexpr std::int64_t largest_seed = std::int64_t{1} << 53U;
constexpr const char* header = "step,layer,microbatch,expert,tokens";
constexpr const char* header_by_sender = "step,layer,microbatch,sender,expert,tokens";

int whole(const Node& node) { return static_cast<int>(node.as_int(0, most_rows - 1)); }

// Of five columns, or with the sender six.
RoutedTokens row_of(std::span<const double> values) {
  const std::size_t last = values.size() - 1;
  RoutedTokens row{static_cast<int>(values[0]), static_cast<int>(values[1]), static_cast<int>(values[2]),
                   static_cast<int>(values[last - 1]), values[last]};
  if (last == 5) row.sender = static_cast<int>(values[3]);
  return row;
}

RoutedTokens read_row(const Node& node, std::size_t columns) {
  const std::vector<Node> items = node.items();
  if (items.size() != columns) {
    node.fail("a row of counts is [step, layer, microbatch, expert, tokens], or in all rows with the sender before the expert");
  }
  std::vector<double> values;
  for (std::size_t i = 0; i + 1 < columns; ++i) values.push_back(whole(items[i]));
  values.push_back(items.back().as_number(0, most_tokens));
  return row_of(values);
}

// A file of counts with one of the headers above; what is wrong in it is reported at its line.
class CountsFile {
 public:
  explicit CountsFile(std::string path) : path_(std::move(path)), file_(path_) {}

  [[nodiscard]] bool open() const { return file_.is_open(); }

  void read_into(ExpertPlan& experts) {
    if (!next_line() || (line_ != header && line_ != header_by_sender)) {
      refuse("the file must begin with its titles", fmt::format("'{}' or '{}'", header, header_by_sender));
    }
    const std::string titles = line_;
    if (titles == header_by_sender) experts.senders = workloads::Senders::own;
    while (next_line()) {
      if (!line_.empty()) experts.counts.push_back(row(titles, titles == header ? 5 : 6));
    }
    if (experts.counts.empty()) refuse("there are no counts below the titles", titles);
  }

 private:
  [[noreturn]] void refuse(std::string_view why, std::string_view hint) const {
    throw config::InputError({path_, std::max(number_, 1), column_}, why, line_, hint);
  }

  // Without its end. What is longer than any row is no table.
  bool next_line() {
    std::array<char, 1000> buffer{};
    file_.getline(buffer.data(), buffer.size());
    const std::streamsize got = file_.gcount();
    if (got == 0) return false;
    ++number_;
    column_ = 1;
    line_.assign(buffer.data(), static_cast<std::size_t>(got) - (file_.good() ? 1 : 0));
    if (file_.fail()) refuse("this line is too long for a row of counts", "");
    if (line_.ends_with('\r')) line_.pop_back();
    return true;
  }

  RoutedTokens row(const std::string& titles, std::size_t columns) {
    std::vector<double> values(columns, 0.0);
    const char* at = line_.data();
    const char* end = at + line_.size();
    for (std::size_t i = 0; i < columns; ++i) {
      double& value = values[i];
      const bool last = i + 1 == columns;
      column_ = static_cast<int>(at - line_.data()) + 1;
      const auto [next, error] = std::from_chars(at, end, value);
      const bool separated = last ? next == end : next != end && *next == ',';
      const bool fits = value >= 0 && (last ? value <= most_tokens : value < static_cast<double>(most_rows));
      if (error != std::errc() || !separated || !fits || (!last && value != std::floor(value))) {
        refuse("a row of counts is numbers from 0, whole but for the tokens", titles);
      }
      at = next + 1;
    }
    return row_of(values);
  }

  std::string path_;
  std::ifstream file_;
  std::string line_;
  int number_ = 0, column_ = 1;
};

void read_counts(const Node& reference, ExpertPlan& experts) {
  const std::string path = config::referenced_path(reference);
  std::error_code ignored;
  CountsFile file(path);
  if (!file.open() || std::filesystem::is_directory(path, ignored)) reference.fail(fmt::format("cannot read '{}'", path));
  file.read_into(experts);
}

void read_counts_here(const Node& counts, ExpertPlan& experts) {
  const std::vector<Node> rows = counts.items();
  const std::size_t columns = !rows.empty() && rows.front().items().size() == 6 ? 6 : 5;
  if (columns == 6) experts.senders = workloads::Senders::own;
  for (const Node& row : rows) experts.counts.push_back(read_row(row, columns));
}

void read_senders(const Node& node, ExpertPlan& experts) {
  const bool counted = experts.routing == "counts", by_sender = counted && experts.senders == workloads::Senders::own;
  experts.senders = workloads::senders.read(node);
  if (by_sender && experts.senders != workloads::Senders::own)
    node.fail("the counts name the senders, so each has its own", "senders: own");
  if (counted && !by_sender && experts.senders == workloads::Senders::own) {
    node.fail("the counts do not name senders", fmt::format("senders: sampled, or a file of '{}'", header_by_sender));
  }
}

void read_routing(const Node& node, ExpertPlan& experts) {
  constexpr const char* ways_to_route = "balanced, {zipf: exponent}, {dirichlet: concentration} or {trace: counts.csv}";
  if (!node.is_map()) {
    if (node.as_string() != "balanced") node.fail("moe.routing cannot be " + config::shown(node.as_string()), ways_to_route);
    return;
  }
  node.allow_keys({"zipf", "dirichlet", "trace", "counts", "seed", "senders"});
  int ways = 0;
  const auto way = [&](const char* key, const char* name) {
    const auto found = node.find(key);
    if (!found) return found;
    experts.routing = name;
    ++ways;
    return found;
  };
  if (const auto exponent = way("zipf", "zipf")) experts.skew = exponent->as_number(0, 100);
  if (const auto concentration = way("dirichlet", "dirichlet")) experts.skew = concentration->as_number(1e-3, 1e6);
  if (const auto trace = way("trace", "counts")) read_counts(*trace, experts);
  if (const auto counts = way("counts", "counts")) read_counts_here(*counts, experts);
  if (ways != 1) node.fail("routing goes one way", ways_to_route);
  const auto place = [](const RoutedTokens& row) { return std::tuple(row.step, row.layer, row.microbatch, row.sender, row.expert); };
  std::ranges::stable_sort(experts.counts, {}, place);
  if (const auto senders = node.find("senders")) read_senders(*senders, experts);
  if (const auto seed = node.find("seed")) experts.seed = static_cast<std::uint64_t>(seed->as_int(0, largest_seed));
}

void read_chunks(const Section& section, ExpertPlan& experts) {
  if (const auto chunks = section.find("chunks")) {
    const std::string text = chunks->is_scalar() ? chunks->as_string() : "";
    const bool automatic = text == "auto";
    if (!automatic && !text.empty() && std::isalpha(static_cast<unsigned char>(text.front())) != 0) {
      chunks->fail("moe.chunks cannot be " + config::shown(text), "a number of chunks, or auto");
    }
    experts.chunks = automatic ? 0 : static_cast<int>(chunks->as_int(1, most_chunks));
  }
  if (const auto thresholds = section.find("thresholds")) {
    experts.thresholds.clear();
    for (const Node& entry : thresholds->items()) experts.thresholds.push_back(static_cast<int>(entry.as_int(1, most_chunks)));
    if (experts.thresholds.empty()) thresholds->fail("thresholds is a list of numbers of chunks");
    if (!std::ranges::is_sorted(experts.thresholds, std::less_equal<>{})) thresholds->fail("thresholds must ascend");
  }
  experts.chunk_recompute = section.flag("chunk_recompute", experts.chunks != 1);
}

}  // namespace

void read_experts(const Node& job, ExpertPlan& experts) {
  const Section section(job, "moe",
                        {"routing", "capacity_factor", "nodes_per_token", "dispatcher", "chunks", "thresholds", "chunk_recompute"});
  if (const auto routing = section.find("routing")) read_routing(*routing, experts);
  if (const auto factor = section.find("capacity_factor")) {
    const bool none = factor->is_scalar() && factor->as_string() == "none";
    experts.capacity_factor = none ? 0 : factor->as_number(1e-3, 1e6);
  }
  experts.nodes_per_token = section.integer("nodes_per_token", 1, 1'000'000, 0);
  if (const auto dispatcher = section.find("dispatcher")) experts.dispatcher = workloads::dispatchers.read(*dispatcher);
  read_chunks(section, experts);
}

}  // namespace rehearse::sim
