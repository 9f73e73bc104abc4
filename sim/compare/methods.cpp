#include "sim/compare/methods.hpp"

#include <charconv>

#include "config/input_error.hpp"

namespace rehearse::sim {
namespace {

constexpr const char* chunks_prefix = "chunks=";

Method parse_method(const std::string& name) {
  if (name == "full-recompute") return {name, {{"recompute", "full"}, {"moe.chunks", "1"}, {"moe.chunk_recompute", "false"}}};
  if (name == "as-is") return {name, {}};
  if (name.starts_with(chunks_prefix)) {
    const std::string value = name.substr(std::string(chunks_prefix).size());
    int chunks = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), chunks);
    const bool number = error == std::errc() && end == value.data() + value.size() && chunks > 0;
    if (number || value == "auto") return {name, {{"moe.chunks", value}, {"moe.chunk_recompute", "true"}}};
  }
  throw config::InputError("--methods: unknown method " + config::shown(name), "known: full-recompute, chunks=N, chunks=auto, as-is");
}

}  // namespace

std::vector<Method> parse_methods(const std::string& list) {
  std::vector<Method> methods;
  for (std::size_t from = 0; from <= list.size();) {
    const std::size_t comma = std::min(list.find(',', from), list.size());
    methods.push_back(parse_method(list.substr(from, comma - from)));
    from = comma + 1;
  }
  return methods;
}

double activation_bytes(const RankMemory& rank) {
  const MemoryBytes& at_peak = rank.at_peak;
  return at_peak[MemoryUse::activations] + at_peak[MemoryUse::temporary] + at_peak[MemoryUse::communication];
}

}  // namespace rehearse::sim
