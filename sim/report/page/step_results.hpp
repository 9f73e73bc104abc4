// What sections about a step share: the methods of result.json and where they stand there.
#pragma once

#include <string>
#include <vector>

#include "sim/report/page/page.hpp"

namespace rehearse::sim::page {

[[nodiscard]] std::vector<std::string> methods_of(const Input& input);  // "analytic", "simulated", ...; empty: no step
[[nodiscard]] std::string main_method(const Input& input);              // the simulation if there is one, else the first
[[nodiscard]] std::string result_at(const std::string& method);         // "/results/critical path"
[[nodiscard]] std::string words_of_key(std::string key);                // "exposed_tp": "exposed tp"
[[nodiscard]] std::string css_of_words(std::string words);              // "exposed tp": "c-exposed-tp"

}  // namespace rehearse::sim::page
