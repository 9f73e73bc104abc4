#include "sim/wholejob/run_result.hpp"

#include <bit>

namespace rehearse::sim {
namespace {

// The same walk for both directions. Nanoseconds may need more than a double's 53 bits: their bits are carried over.
template <class Result, class Visit>
void walk(Result& result, Visit visit) {
  visit(result.seed);
  visit(result.wall);
  for (auto& ns : result.account.ns) visit(ns);
  for (auto& count : result.failures) visit(count);
  for (auto* count : {&result.steps, &result.lost_steps, &result.saves, &result.not_felt, &result.slow, &result.waits, &result.resized,
                      &result.refused}) {
    visit(*count);
  }
  visit(result.finished);
  visit(result.clock_s);
}

}  // namespace

std::vector<double> to_numbers(const RunResult& result) {
  std::vector<double> numbers;
  walk(result, [&](const auto& value) { numbers.push_back(std::bit_cast<double>(value)); });
  return numbers;
}

RunResult from_numbers(const std::vector<double>& numbers) {
  RunResult result;
  std::size_t at = 0;
  walk(result, [&]<class Value>(Value& value) { value = std::bit_cast<Value>(numbers.at(at++)); });
  return result;
}

}  // namespace rehearse::sim
