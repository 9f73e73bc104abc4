#include "sim/federated/methods.hpp"

#include <algorithm>

#include "sim/federated/simulate_round.hpp"

namespace rehearse::federated {

MethodRow row_of(const Job& job, std::string method, std::string cuts, std::string shares, Plan plan) {
  MethodRow row{.method = std::move(method), .cuts = std::move(cuts), .shares = std::move(shares)};
  const double aggregation_s = job.aggregation_s(job.devices.size());
  row.formula_s = plan.round_s + aggregation_s;
  row.any_schedule_s = plan.any_schedule_s + aggregation_s;
  row.plan = std::move(plan);
  return row;
}

MethodRow impossible(std::string method, std::string why) {
  return {.method = std::move(method), .cuts = "-", .shares = "-", .note = std::move(why)};
}

std::vector<MethodRow> compare_methods(const Job& job, const std::vector<std::string>& names, const MethodOptions& options) {
  std::vector<std::string> chosen = names.empty() ? MethodRegistry::names() : names;
  std::ranges::stable_sort(chosen, {}, [](const std::string& name) { return MethodRegistry::get(name).place(); });
  std::vector<MethodRow> rows;
  for (const std::string& name : chosen) {
    for (MethodRow& row : MethodRegistry::get(name).rows(job, options)) {
      if (row.plan) row.simulated_s = simulate_round(job, *row.plan).result.round_s;
      rows.push_back(std::move(row));
    }
  }
  return rows;
}

}  // namespace rehearse::federated
