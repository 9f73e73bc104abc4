// Tokens by step, layer, micro-batch and expert, out of a CSV file.
#include "sim/job/counts_file.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <span>

#include "config/table.hpp"

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

void read_rows(config::Table& table, ExpertPlan& experts) {
  const std::string titles = fmt::format("{}", fmt::join(table.titles(), ","));
  if (titles != header && titles != header_by_sender) {
    table.fail("these are not the columns of counts", fmt::format("'{}' or '{}'", header, header_by_sender));
  }
  if (titles == header_by_sender) experts.senders = workloads::Senders::own;
  std::vector<double> values(table.titles().size());
  while (table.next()) {
    for (std::size_t i = 0; i + 1 < values.size(); ++i) values[i] = static_cast<double>(table.whole(i, 0, most_rows - 1));
    values.back() = table.number(values.size() - 1, 0, most_tokens);
    experts.counts.push_back(row_of(values));
  }
  if (experts.counts.empty()) table.fail("there are no counts below the titles", titles);
}

}  // namespace

const char* titles_by_sender() { return header_by_sender; }

void read_counts_file(const Node& reference, ExpertPlan& experts) {
  config::Table table(reference);
  read_rows(table, experts);
}

void read_counts_here(const Node& counts, ExpertPlan& experts) {
  const std::vector<Node> rows = counts.items();
  const std::size_t columns = !rows.empty() && rows.front().items().size() == 6 ? 6 : 5;
  if (columns == 6) experts.senders = workloads::Senders::own;
  for (const Node& row : rows) experts.counts.push_back(read_row(row, columns));
}

}  // namespace rehearse::sim
