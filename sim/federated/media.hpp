// The uplink, the downlink and the server in a simulated round: how what wants them at the same time shares them.
#pragma once

#include <deque>
#include <optional>

#include "sim/engine/machine.hpp"
#include "sim/federated/programs.hpp"

namespace rehearse::federated {

// One medium, or the server. Its links carry nanoseconds of it at its whole capacity.
class Medium {
 public:
  // Before the machine is sealed. `users`: devices, each of which has a link of its own beside the common one.
  Medium(sim::Machine& machine, Sharing sharing, std::size_t users);

  struct Use {
    sim::HostIndex host = 0;
    double seconds = 0;  // of it at its whole capacity
    double share = 0;    // cap (reserved), weight (weighted)
    bool alone = false;  // on a link of its own at the whole capacity: a dedicated link
    sim::Token token = 0;
  };
  void use(const Use& use);
  // The use of this token has ended or is given up.
  void leave(sim::Token token);
  void slow_down(double factor);  // from now on; 1: as it was

  // Whether it is free for `token` now, or it waits in a queue.
  [[nodiscard]] bool waits(sim::Token token) const;

 private:
  void start(const Use& use, sim::LinkIndex link, double weight);
  [[nodiscard]] double capacity(double share) const;

  sim::Machine& machine_;
  Sharing sharing_;
  double factor_ = 1;
  sim::LinkIndex common_ = 0;
  std::vector<sim::LinkIndex> own_;   // [user]
  std::vector<double> own_share_;     // [user] now
  std::deque<Use> queue_;             // fifo: who waits
  std::optional<sim::Token> served_;  // fifo
};

}  // namespace rehearse::federated
