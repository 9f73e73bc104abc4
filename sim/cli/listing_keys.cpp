// All keys of a job file.
#include <algorithm>

#include "sim/cli/listing.hpp"
#include "sim/job/job_keys.hpp"

namespace rehearse::cli {
namespace {

class KeysOfJobs final : public Listing {
 public:
  [[nodiscard]] std::vector<std::vector<Field>> rows() const override {
    std::vector<std::vector<Field>> rows;
    const config::Shape shape = sim::job_shape();
    for (const config::Place& place : all_places(shape)) add(place, rows);
    return rows;
  }

 private:
  // A key of several alternatives has one row with the values of all.
  static void add(const config::Place& place, std::vector<std::vector<Field>>& rows) {
    const auto same = std::ranges::find_if(rows, [&](const std::vector<Field>& row) { return row.front().text == place.path; });
    if (same == rows.end()) return rows.push_back(row_of(place));
    Field& value = (*same)[1];
    const std::string more = describe(place.parameter->shape);
    if (value.text.find(more) == std::string::npos) value = text_field(value.title, value.text + " | " + more);
  }

  static std::vector<Field> row_of(const config::Place& place) {
    const config::Parameter& key = *place.parameter;
    return {text_field("name", place.path), text_field("value", describe(key.shape)),
            text_field("default", key.required ? "required" : key.otherwise), text_field("means", key.means)};
  }
};

const ListingRegistry::Registration<KeysOfJobs> registration("keys");

}  // namespace
}  // namespace rehearse::cli
