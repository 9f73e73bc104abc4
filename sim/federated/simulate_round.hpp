// One round on the machine of sim/engine: every device a host, every medium and the server a link whose bytes are seconds of it, flows with
// the shares as caps (reserved) or as weights (work-conserving), or one flow at a time (fifo).
#pragma once

#include <functional>
#include <limits>

#include "sim/federated/round_result.hpp"

namespace rehearse::federated {

inline constexpr double never = std::numeric_limits<double>::infinity();

// Something is so many times slower, from an instant on for some time.
struct SlowSpell {
  enum class What : std::uint8_t { device, uplink, downlink, server } what = What::device;
  std::size_t device = 0;
  double factor = 1;
  double from_s = 0, for_s = never;
};

// What happens to a round beside what is planned.
struct Conditions {
  std::vector<double> leaves_at_s;  // [device]; empty: all stay
  std::vector<SlowSpell> slow;
  double deadline_s = never;
  std::size_t enough = 0;            // the round ends when so many have finished; 0: all that stay
  double server_fails_at_s = never;  // the round is lost
};

// From one instant to another on a track.
struct Span {
  std::uint32_t device = 0;
  Phase phase = Phase::forward;
  double from_s = 0, to_s = 0;
};

struct SimulatedRound {
  RoundResult result;
  double queue_s = 0;                   // spent in queues, where something is served first come first served
  bool lost = false;                    // the server failed
  std::vector<Span> spans;              // if asked for; of one device of each class that is alike
  std::vector<std::size_t> stands_for;  // [device] the simulated device that it is as

  // Whether anything is trained.
  [[nodiscard]] bool counts() const { return !lost && result.anybody_finished(); }
};

struct SimulateOptions {
  bool spans = false;
  std::function<void(double)> progress = {};  // share done
};

// With `simulation.solver: simgrid` in a child process. Throws config::InputError where more is in flight than can be simulated.
[[nodiscard]] SimulatedRound simulate_round(const Job& job, const Plan& plan, const Conditions& conditions = {},
                                            const SimulateOptions& options = {});

}  // namespace rehearse::federated
