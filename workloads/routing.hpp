// Where routers send tokens. One .cpp per way of routing in workloads/routings/, registered by the name that a job calls it by.
#pragma once

#include <string_view>
#include <vector>

#include "config/registry.hpp"
#include "workloads/plan.hpp"

namespace rehearse::workloads {

// Of one layer of the model, micro-batch and step, each counted from 0; where senders have a popularity of their own, of one of them by its
// place in the expert-parallel group, otherwise -1. The data-parallel replicas of a layer route alike.
struct RoutingPlace {
  int step = 0, layer = 0, microbatch = 0, sender = -1;
};

class Routing {
 public:
  static constexpr std::string_view kind = "routing";
  virtual ~Routing() = default;

  // Whether all experts get the same everywhere.
  [[nodiscard]] virtual bool even() const { return false; }
  // Popularity of each expert at a place: shares of all (token, expert) pairs; they add up to 1. The same plan and place give the same
  // shares in any order of asking.
  [[nodiscard]] virtual std::vector<double> shares(const ExpertPlan& plan, int experts, const RoutingPlace& place) const = 0;
};

using RoutingRegistry = config::Registry<Routing>;

// Random numbers that belong to a place alone.
[[nodiscard]] std::uint64_t seed_of(const ExpertPlan& plan, const RoutingPlace& place);

}  // namespace rehearse::workloads
