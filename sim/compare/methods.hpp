// One job under several ways of coping with activations, on the same routing.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "sim/engine/simulate.hpp"
#include "sim/job/job.hpp"

namespace rehearse::sim {

struct Method {
  std::string name;                                       // "full-recompute", "chunks=8", "chunks=auto"
  std::vector<std::pair<std::string, std::string>> sets;  // keys of the job
};
// Throws InputError for a name that is no method.
[[nodiscard]] std::vector<Method> parse_methods(const std::string& list);

struct MethodResult {
  std::string name;
  StepResult simulated;
};
using MethodResults = std::vector<MethodResult>;

// What comes and goes: everything on a rank at its peak but weights, gradients, optimizer and framework.
[[nodiscard]] double activation_bytes(const RankMemory& rank);

}  // namespace rehearse::sim
