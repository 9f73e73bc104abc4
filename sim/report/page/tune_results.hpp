// What sections about a search for the best plan share: its goals, and how much worse a plan is.
#pragma once

#include <string>
#include <vector>

#include "sim/report/page/page.hpp"

namespace rehearse::sim::page {

[[nodiscard]] bool has_search(const Input& input);                    // of plans, as `tune` writes it for a training job
[[nodiscard]] std::vector<std::string> goals_of(const Input& input);  // "step", "memory", ...; the first decides
[[nodiscard]] Unit unit_of_goal(const std::string& goal);             // that tells plans apart which are nearly alike
[[nodiscard]] Unit short_unit_of_goal(const std::string& goal);
[[nodiscard]] std::string words_of_goal(const std::string& goal);  // "tokens_per_s": "tokens per s"
[[nodiscard]] std::string best_goal_at(const Input& input);        // where the best plan's first goal stands

// By what share the number there is worse than the best plan's first goal: 0.02 is 2 % longer, dearer or slower.
[[nodiscard]] double worse_share(const Input& input, const std::string& pointer);
// In words; "-" where there is no number.
[[nodiscard]] std::string worse(const Input& input, const std::string& pointer);

// So many of a list, evenly chosen, the first and the last among them; all where there are no more.
[[nodiscard]] std::vector<std::size_t> evenly(std::size_t size, std::size_t most);

// The places of values in the order in which a reader looks for them: numbers by size, words as they are.
[[nodiscard]] std::vector<std::size_t> in_order(const std::vector<std::string>& values);

}  // namespace rehearse::sim::page
