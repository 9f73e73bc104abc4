// What tuned cuts and shares are compared with: ways of choosing them, each a component.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "config/registry.hpp"
#include "sim/federated/plan.hpp"

namespace rehearse::federated {

// One way of choosing on the same devices and draws. Rounds with aggregation.
struct MethodRow {
  std::string method, cuts, shares;
  std::optional<Plan> plan = {};  // of what has shares
  double formula_s = 0;
  std::optional<double> simulated_s = {};
  double any_schedule_s = 0;                        // no schedule of these cuts is faster
  std::optional<double> least_s = {}, most_s = {};  // over seeds, where there are several
  std::string note = {};
};

struct MethodOptions {
  int runs = 10;  // seeds of what is drawn
};

class Method {
 public:
  static constexpr std::string_view kind = "method";
  virtual ~Method() = default;
  // Its place in a list of all; smaller ones come first.
  [[nodiscard]] virtual int place() const = 0;
  [[nodiscard]] virtual std::vector<MethodRow> rows(const Job& job, const MethodOptions& options) const = 0;
};

using MethodRegistry = config::Registry<Method>;

// The rows of these methods (all, where none is named), each plan simulated as the job says.
[[nodiscard]] std::vector<MethodRow> compare_methods(const Job& job, const std::vector<std::string>& names, const MethodOptions& options);

[[nodiscard]] MethodRow row_of(const Job& job, std::string method, std::string cuts, std::string shares, Plan plan);
// What only the others can say: no common cut, no device that holds the whole model.
[[nodiscard]] MethodRow impossible(std::string method, std::string why);

}  // namespace rehearse::federated
