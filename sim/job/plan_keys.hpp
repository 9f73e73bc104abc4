// The keys of a job that make up its plan: those that a search takes from one point to the next without reading a job anew.
#pragma once

#include <cstddef>
#include <string_view>

#include "workloads/plan.hpp"

namespace rehearse::sim {

struct PlanKey {
  std::string_view path;
  void (*copy)(const workloads::Workload& from, workloads::Workload& to);  // its value, and nothing else
};

// nullptr: a key that is none of the plan's.
[[nodiscard]] const PlanKey* plan_key(std::string_view path);

// From the outermost on, as a search walks them: what decides on the layout first, what points can share all the work but for last.
[[nodiscard]] std::size_t plan_key_rank(const PlanKey& key);

}  // namespace rehearse::sim
