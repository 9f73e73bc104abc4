#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/App.hpp>
#include <sstream>

#include "sim/cli/command.hpp"
#include "sim/cli/listing.hpp"
#include "sim/cli/terminal.hpp"
#include "sim/report/table.hpp"

namespace rehearse::cli {
namespace {

using Rows = std::vector<std::vector<Field>>;

std::string json_text(const Rows& rows) {
  auto list = nlohmann::ordered_json::array();
  for (const auto& row : rows) {
    nlohmann::ordered_json item;
    for (const Field& field : row) item[field.title] = field.value;
    list.push_back(std::move(item));
  }
  return list.dump(2) + '\n';
}

std::vector<sim::Column> columns_of(const std::vector<Field>& row) {
  std::vector<sim::Column> columns;
  columns.reserve(row.size());
  for (const Field& field : row) {
    if (field.in_table) columns.push_back({field.title, field.value.is_string() ? sim::Align::left : sim::Align::right});
  }
  return columns;
}

// What stands before other columns is cut so that a row can be read; JSON has it whole.
std::string shortened(const std::string& text) {
  constexpr std::size_t longest = 56;
  const std::size_t cut = text.size() <= longest ? std::string::npos : text.rfind(' ', longest - 4);
  return cut == std::string::npos ? text : text.substr(0, cut) + " ...";
}

std::string table_text(const Rows& rows) {
  if (rows.empty()) return "";
  sim::Table table{.columns = columns_of(rows.front()), .bold_header = colour_allowed(Stream::out)};
  for (const auto& row : rows) {
    auto& cells = table.rows.emplace_back();
    for (const Field& field : row) {
      if (field.in_table) cells.push_back(cells.size() + 1 == table.columns.size() ? field.text : shortened(field.text));
    }
  }
  std::ostringstream text;
  table.print(text);
  return text.str();
}

struct ListOptions {
  std::string what;
  std::string kind;
  bool json = false;
};

Exit list(const ListOptions& options) {
  const Listing& listing = ListingRegistry::get(options.what);
  const Rows rows = options.kind.empty() ? listing.rows() : listing.rows_of_kind(options.kind);
  print_result(options.json ? json_text(rows) : table_text(rows));
  return Exit::fine;
}

class List final : public Command {
 public:
  [[nodiscard]] std::string_view summary() const override { return "List what a job can name: models, clusters, schedules, ..."; }
  [[nodiscard]] std::string_view examples() const override {
    return "Examples:\n"
           "  rehearse list models\n"
           "  rehearse list jobs --json\n";
  }
  [[nodiscard]] Action declare(CLI::App& app) const override {
    auto options = std::make_shared<ListOptions>();
    app.add_option("WHAT", options->what, fmt::format("{}", fmt::join(ListingRegistry::names(), " | ")))->required();
    app.add_option("--kind", options->kind, "Of jobs with this section instead of training jobs; for keys")->type_name("SECTION");
    app.add_flag("--json", options->json, "Print JSON instead of a table");
    return [options] { return list(*options); };
  }
};

const CommandRegistry::Registration<List> list_registration("list");

}  // namespace

std::vector<std::vector<Field>> Listing::rows_of_kind(const std::string&) const {
  throw config::InputError("--kind goes with keys", "rehearse list keys --kind SECTION");
}
}  // namespace rehearse::cli
