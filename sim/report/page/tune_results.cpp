#include "sim/report/page/tune_results.hpp"

#include <algorithm>
#include <cmath>

#include "config/table.hpp"
#include "sim/report/page/step_results.hpp"

namespace rehearse::sim::page {

bool has_search(const Input& input) { return input.has("/tune/counts") && input.has("/tune/sensitivity"); }

std::vector<std::string> goals_of(const Input& input) { return input.at("/tune/goal").get<std::vector<std::string>>(); }

Unit unit_of_goal(const std::string& goal) { return goal == "step" ? Unit::milliseconds : short_unit_of_goal(goal); }

Unit short_unit_of_goal(const std::string& goal) {
  if (goal == "step" || goal == "time") return Unit::time;
  if (goal == "memory") return Unit::bytes;
  return goal == "mfu" || goal == "ettr" ? Unit::percent : Unit::plain;
}

std::string words_of_goal(const std::string& goal) {
  if (goal == "mfu") return "MFU";
  return goal == "ettr" ? "ETTR" : words_of_key(goal);
}

std::string best_goal_at(const Input& input) { return "/tune/best/0/goals/" + goals_of(input).front(); }

double worse_share(const Input& input, const std::string& pointer) {
  return std::abs(input.at(pointer).get<double>() / input.at(best_goal_at(input)).get<double>() - 1);
}

std::string worse(const Input& input, const std::string& pointer) {
  if (!input.has(pointer) || !input.at(pointer).is_number()) return "-";
  return worked_out(worse_share(input, pointer), Unit::percent, fmt::format("worse {} {}", pointer, best_goal_at(input)));
}

std::vector<std::size_t> evenly(std::size_t size, std::size_t most) {
  std::vector<std::size_t> chosen;
  for (std::size_t i = 0; i < std::min(size, most); ++i) chosen.push_back(size <= most ? i : i * (size - 1) / (most - 1));
  return chosen;
}

std::vector<std::size_t> in_order(const std::vector<std::string>& values) {
  std::vector<std::size_t> order;
  std::vector<double> numbers;
  for (std::size_t i = 0; i < values.size(); ++i) {
    order.push_back(i);
    if (const auto number = config::number_in(values[i])) numbers.push_back(*number);
  }
  if (numbers.size() == values.size()) std::ranges::stable_sort(order, {}, [&](std::size_t i) { return numbers[i]; });
  return order;
}

}  // namespace rehearse::sim::page
