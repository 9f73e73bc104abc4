#include "sim/federated/rates_over_time.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "config/table.hpp"
#include "sim/federated/device.hpp"

namespace rehearse::federated {
namespace {

using config::Form;
using config::Node;
using config::Shape;

constexpr double longest_series_s = 1e12, slowest = 1e-3, fastest = 1e15;

std::vector<RateRow> rows_of_file(const Node& name) {
  config::Table table(name);
  const std::vector<std::string> titles{"time_s", "device", "uplink_bytes_per_s", "downlink_bytes_per_s"};
  table.check_titles(titles, titles);
  const std::size_t time = *table.column("time_s"), device = *table.column("device"), up = *table.column("uplink_bytes_per_s"),
                    down = *table.column("downlink_bytes_per_s");
  std::vector<RateRow> rows;
  while (table.next()) {
    rows.push_back({table.number(time, 0, longest_series_s), std::string(table.cell(device)), table.number(up, slowest, fastest),
                    table.number(down, slowest, fastest), table.where()});
  }
  if (rows.empty()) table.fail("there are no rates below the titles");
  return rows;
}

RateRow row_of(const Node& node) {
  const std::vector<Node> items = node.items();
  if (items.size() != 4) node.fail("a row of rates is [time_s, device, uplink_bytes_per_s, downlink_bytes_per_s]");
  return {items[0].as_number(0, longest_series_s), items[1].as_string(), items[2].as_number(slowest, fastest),
          items[3].as_number(slowest, fastest), node.where()};
}

Node written_rows(const std::vector<RateRow>& rows) {
  std::vector<Node> list;
  const auto number = [](double value) { return Node::scalar(fmt::format("{}", value)); };
  for (const RateRow& row : rows) {
    list.push_back(
        Node::list({number(row.from_s), Node::scalar(row.device, true), number(row.uplink_bytes_per_s), number(row.downlink_bytes_per_s)}));
  }
  return Node::list(list);
}

}  // namespace

Form<std::vector<RateRow>> rate_rows_form() {
  const Shape list{.kind = Shape::Kind::list, .parts = {{.kind = Shape::Kind::list, .parts = {{.kind = Shape::Kind::anything}}}}};
  return {config::either({{.kind = Shape::Kind::text}, list}),
          [](const Node& node) {
            if (!node.is_sequence()) return rows_of_file(node);
            std::vector<RateRow> rows;
            for (const Node& item : node.items()) rows.push_back(row_of(item));
            return rows;
          },
          written_rows};
}

RatesOverTime::RatesOverTime(const std::vector<RateRow>& rows, const std::vector<std::string>& names) : rows_(names.size()) {
  std::unordered_map<std::string_view, std::size_t> number;
  for (std::size_t n = 0; n < names.size(); ++n) number.emplace(names[n], n);
  for (const RateRow& row : rows) {
    const auto found = number.find(row.device);
    if (found == number.end()) throw config::InputError(row.where, fmt::format("no device is called {}", config::shown(row.device)));
    std::vector<RateRow>& of_device = rows_[found->second];
    if (!of_device.empty() && row.from_s < of_device.back().from_s)
      throw config::InputError(row.where, fmt::format("device '{}': earlier than its row before", row.device));
    of_device.push_back(row);
  }
}

void RatesOverTime::apply(std::size_t device, double at_s, Device& to) const {
  const std::vector<RateRow>& rows = rows_[device];
  const auto after = std::ranges::upper_bound(rows, at_s, {}, &RateRow::from_s);
  if (after == rows.begin()) return;
  to.uplink_bytes_per_s = std::prev(after)->uplink_bytes_per_s;
  to.downlink_bytes_per_s = std::prev(after)->downlink_bytes_per_s;
}

}  // namespace rehearse::federated
