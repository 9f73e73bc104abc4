// Tokens by step, layer, micro-batch and expert, out of a CSV file.
#include "sim/job/counts_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <span>

#include "config/reference.hpp"

namespace rehearse::sim {
namespace {

using config::Node;
using workloads::ExpertPlan;
using workloads::RoutedTokens;

constexpr std::int64_t most_rows = std::int64_t{1} << 31U;
constexpr double most_tokens = 1e15;
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

}  // namespace

const char* titles_by_sender() { return header_by_sender; }

void read_counts_file(const Node& reference, ExpertPlan& experts) {
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

}  // namespace rehearse::sim
