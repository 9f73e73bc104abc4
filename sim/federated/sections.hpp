// What commands about a split-federated job find out: sections of a report.
#pragma once

#include <memory>
#include <optional>

#include "sim/federated/methods.hpp"
#include "sim/federated/protocol.hpp"
#include "sim/federated/run_rounds.hpp"
#include "sim/federated/simulate_round.hpp"

namespace rehearse::federated {

inline constexpr const char* not_simulated = "Convergence and accuracy are not simulated: this is time, bytes and energy.";

// predict, simulate, compare: one round of one plan.
struct RoundSection {
  std::shared_ptr<const Job> job;
  Plan plan;
  std::optional<RoundResult> formula;
  std::optional<SimulatedRound> simulated;
  std::vector<std::string> reasons;  // why the two differ
};

// tune.
struct TuneSection {
  bool exact = false;
  struct ByWeighted {
    double before_s = 0, after_s = 0;  // simulated, with aggregation
    int tried = 0, taken = 0;
  };
  std::optional<ByWeighted> by_weighted;
  struct Decentral {
    Negotiation negotiation;
    double bytes_up = 0, bytes_down = 0;  // of each device
    double seconds = 0;                   // on the job's own links
  };
  std::optional<Decentral> decentral;
};

using MethodRows = std::vector<MethodRow>;

// explain: the round with one choice changed.
struct Effect {
  std::string key, value;
  double formula_s = 0, simulated_s = 0;
  std::string refused = {};  // why it cannot be
};
using Effects = std::vector<Effect>;

struct RunSection {
  std::shared_ptr<const Job> job;
  RunHistory history;
};

}  // namespace rehearse::federated
