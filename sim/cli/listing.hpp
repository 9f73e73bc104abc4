// What `rehearse list` can list. One kind of thing, one registration.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "config/registry.hpp"

namespace rehearse::cli {

struct Field {
  std::string title;
  nlohmann::ordered_json value;  // --json
  std::string text;              // the table
  bool in_table = true;          // else --json alone
};

class Listing {
 public:
  static constexpr std::string_view kind = "list";
  virtual ~Listing() = default;

  // One row per thing, sorted by name; every row has the same fields in the table, the name first.
  [[nodiscard]] virtual std::vector<std::vector<Field>> rows() const = 0;
  // The same for jobs of another kind than training (sim/kind/job_kind.hpp). Throws config::InputError where that is no question.
  [[nodiscard]] virtual std::vector<std::vector<Field>> rows_of_kind(const std::string& kind) const;
};

using ListingRegistry = config::Registry<Listing>;

[[nodiscard]] Field text_field(std::string title, const std::string& text);
[[nodiscard]] Field count_field(std::string title, int count);  // 0 is shown as "any"

}  // namespace rehearse::cli
