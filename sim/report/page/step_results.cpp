#include "sim/report/page/step_results.hpp"

#include <algorithm>

namespace rehearse::sim::page {

std::vector<std::string> methods_of(const Input& input) {
  std::vector<std::string> methods;
  if (!input.has("/results") || !input.at("/results").is_object()) return methods;
  for (const auto& [method, result] : input.at("/results").items()) {
    if (result.contains("mean_phases_s")) methods.push_back(method);
  }
  return methods;
}

std::string main_method(const Input& input) {
  const std::vector<std::string> methods = methods_of(input);
  return std::ranges::find(methods, "simulated") != methods.end() ? "simulated" : methods.front();
}

std::string result_at(const std::string& method) { return "/results/" + pointer_part(method); }

std::string words_of_key(std::string key) {
  std::ranges::replace(key, '_', ' ');
  return key;
}

std::string css_of_words(std::string words) {
  std::ranges::replace(words, ' ', '-');
  return "c-" + words;
}

}  // namespace rehearse::sim::page
