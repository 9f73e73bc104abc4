// All keys of a job file.
#include <fmt/ranges.h>

#include <algorithm>

#include "sim/cli/listing.hpp"
#include "sim/job/job_keys.hpp"
#include "sim/kind/job_kind.hpp"

namespace rehearse::cli {
namespace {

class KeysOfJobs final : public Listing {
 public:
  [[nodiscard]] std::vector<std::vector<Field>> rows() const override { return rows_of(sim::job_shape()); }
  [[nodiscard]] std::vector<std::vector<Field>> rows_of_kind(const std::string& kind) const override {
    return rows_of(sim::JobKindRegistry::get(kind).shape());
  }

 private:
  static std::vector<std::vector<Field>> rows_of(const config::Shape& shape) {
    std::vector<std::vector<Field>> rows;
    for (const config::Place& place : all_places(shape)) add(place, rows);
    return rows;
  }

  // A key of several alternatives has one row with the values of all.
  static void add(const config::Place& place, std::vector<std::vector<Field>>& rows) {
    const auto same = std::ranges::find_if(rows, [&](const std::vector<Field>& row) { return row.front().text == place.path; });
    if (same == rows.end()) return rows.push_back(row_of(place));
    Field& value = (*same)[1];
    std::vector<std::string> forms = forms_of(value.text);
    for (const std::string& form : forms_of(describe(place.parameter->shape))) {
      if (std::ranges::find(forms, form) == forms.end()) forms.push_back(form);
    }
    value = text_field(value.title, fmt::format("{}", fmt::join(forms, " | ")));
  }

  // "a | b" as a and b.
  static std::vector<std::string> forms_of(const std::string& text) {
    constexpr std::string_view between = " | ";
    std::vector<std::string> forms;
    for (std::size_t start = 0; start <= text.size();) {
      const std::size_t end = std::min(text.find(between, start), text.size());
      forms.push_back(text.substr(start, end - start));
      start = end + between.size();
    }
    return forms;
  }

  static std::vector<Field> row_of(const config::Place& place) {
    const config::Parameter& key = *place.parameter;
    return {text_field("name", place.path), text_field("value", describe(key.shape)),
            text_field("default", key.required ? "required" : key.otherwise), text_field("means", key.means)};
  }
};

const ListingRegistry::Registration<KeysOfJobs> keys_of_jobs_registration("keys");

}  // namespace
}  // namespace rehearse::cli
