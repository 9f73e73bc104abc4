// All keys of a job file.
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "sim/cli/listing.hpp"
#include "sim/job/job_keys.hpp"
#include "sim/kind/job_kind.hpp"

namespace rehearse::cli {
namespace {

using config::Shape;
using Json = nlohmann::ordered_json;

// "a | b" as a and b.
std::vector<std::string> forms_in(const std::string& text) {
  constexpr std::string_view between = " | ";
  std::vector<std::string> forms;
  for (std::size_t start = 0; start <= text.size();) {
    const std::size_t end = std::min(text.find(between, start), text.size());
    forms.push_back(text.substr(start, end - start));
    start = end + between.size();
  }
  return forms;
}

// Of all alternatives, each once.
std::string value_text(const std::vector<Shape>& alternatives) {
  std::vector<std::string> forms;
  for (const Shape& shape : alternatives) {
    for (const std::string& form : forms_in(describe(shape))) {
      if (alternatives.size() == 1 || std::ranges::find(forms, form) == forms.end()) forms.push_back(form);
    }
  }
  return fmt::format("{}", fmt::join(forms, " | "));
}

std::string_view type_of(Shape::Kind kind) {
  using Kind = Shape::Kind;
  constexpr std::array<std::pair<Kind, std::string_view>, 10> types{{{Kind::whole, "whole"},
                                                                     {Kind::number, "number"},
                                                                     {Kind::truth, "truth"},
                                                                     {Kind::text, "text"},
                                                                     {Kind::choice, "choice"},
                                                                     {Kind::quantity, "quantity"},
                                                                     {Kind::list, "list"},
                                                                     {Kind::mapping, "mapping"},
                                                                     {Kind::either, "either"},
                                                                     {Kind::anything, "anything"}}};
  return std::ranges::find(types, kind, &std::pair<Kind, std::string_view>::first)->second;
}

void add_bound(const char* name, double bound, const Shape& shape, Json& form) {
  if (std::abs(bound) == HUGE_VAL) return;
  form[name] = shape.kind == Shape::Kind::whole ? Json(static_cast<std::int64_t>(bound)) : Json(bound);
}

Json form_of_all(const std::vector<Shape>& alternatives);

Json form_of_one(const Shape& shape) {
  Json form{{"type", type_of(shape.kind)}};
  if (shape.kind == Shape::Kind::quantity) form["unit"] = config::base_unit_of(shape.dimension);
  add_bound("min", shape.low, shape, form);
  add_bound("max", shape.high, shape, form);
  if (shape.kind == Shape::Kind::choice) form["choices"] = shape.choices;
  if (shape.kind == Shape::Kind::list) form["items"] = form_of_all(shape.parts);
  return form;
}

void add_forms(const Shape& shape, std::vector<Json>& forms) {
  if (shape.kind == Shape::Kind::either) {
    for (const Shape& part : shape.parts) add_forms(part, forms);
    return;
  }
  Json form = form_of_one(shape);
  if (std::ranges::find(forms, form) == forms.end()) forms.push_back(std::move(form));
}

// What a value is, for programs: its type says which of the other fields there are.
Json form_of_all(const std::vector<Shape>& alternatives) {
  std::vector<Json> forms;
  for (const Shape& shape : alternatives) add_forms(shape, forms);
  return forms.size() == 1 ? forms.front() : Json{{"type", type_of(Shape::Kind::either)}, {"forms", forms}};
}

// A key, with its shape in each of the alternatives that have it.
struct ListedKey {
  config::Place place;
  std::vector<Shape> shapes = {};
};

std::vector<Field> key_row(const ListedKey& key) {
  const config::Parameter& parameter = *key.place.parameter;
  std::vector<Field> row{text_field("name", key.place.path), text_field("value", value_text(key.shapes)),
                         text_field("default", parameter.required ? "required" : parameter.otherwise),
                         text_field("means", parameter.means)};
  const Json form = form_of_all(key.shapes);
  for (const auto& [name, value] : form.items()) row.push_back({name, value, "", false});
  return row;
}

class KeysOfJobs final : public Listing {
 public:
  [[nodiscard]] std::vector<std::vector<Field>> rows() const override { return rows_of(sim::job_shape()); }
  [[nodiscard]] std::vector<std::vector<Field>> rows_of_kind(const std::string& kind) const override {
    return rows_of(sim::JobKindRegistry::get(kind).shape());
  }

 private:
  static std::vector<std::vector<Field>> rows_of(const Shape& shape) {
    std::vector<ListedKey> keys;
    for (const config::Place& place : all_places(shape)) {
      const auto same = std::ranges::find(keys, place.path, [](const ListedKey& key) { return key.place.path; });
      ListedKey& key = same == keys.end() ? keys.emplace_back(ListedKey{.place = place}) : *same;
      key.shapes.push_back(place.parameter->shape);
    }
    std::vector<std::vector<Field>> rows;
    rows.reserve(keys.size());
    for (const ListedKey& key : keys) rows.push_back(key_row(key));
    return rows;
  }
};

const ListingRegistry::Registration<KeysOfJobs> keys_of_jobs_registration("keys");

}  // namespace
}  // namespace rehearse::cli
