// Tuning beyond the exact solution: a search by simulation, and the negotiation that finds the same without a centre.
#pragma once

#include <functional>

#include "sim/federated/sections.hpp"

namespace rehearse::federated {

// Changes one device's cut at a time, the shares tuned anew, and keeps what the simulation says is faster: the 20 changes that cost least
// at the prices of the plan, until none helps. A search, not an optimum. `plan` becomes the best one.
[[nodiscard]] TuneSection::ByWeighted improve_by_simulation(const Job& job, Plan& plan, const std::function<void(double)>& progress);

[[nodiscard]] TuneSection::Decentral decentral(const Job& job);

// The job with the plan spelt out: every device by itself, its cut, the shares in `shares_file`.
[[nodiscard]] std::string tuned_job_yaml(const Job& job, const Plan& plan, const std::string& shares_file);
[[nodiscard]] std::string shares_csv(const Job& job, const Plan& plan);

}  // namespace rehearse::federated
