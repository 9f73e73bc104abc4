// The nodes of a job: which are left out, which are missing, which lie in repair, and the spares.
#pragma once

#include <functional>
#include <optional>
#include <queue>
#include <set>
#include <vector>

#include "sim/faults/nanoseconds.hpp"

namespace rehearse::sim {

class NodePool {
 public:
  explicit NodePool(std::optional<int> spares) : spares_(spares) {}

  [[nodiscard]] bool enough_for(int nodes) const { return !spares_ || *spares_ >= missing_ + nodes; }
  [[nodiscard]] bool waiting() const { return !enough_for(0); }

  // `nodes` broke down and each is repaired after some time; their places are filled with spares, now or when there are enough.
  void replace(int nodes);
  // Their places stay empty until nodes come back.
  void leave_out(const std::vector<int>& places);
  void send_to_repair(Ns back_at) {
    if (spares_) in_repair_.push(back_at);
  }

  // Spares take the places that are missing.
  void fill();
  [[nodiscard]] Ns next_back() const { return in_repair_.empty() ? never : in_repair_.top(); }
  // A node comes back: for a missing place, else for one left out, else as a spare. Returns whether one that was left out can be taken in.
  bool take_back();
  // The nodes that came back are in use again.
  void rejoin() { returning_.clear(); }
  [[nodiscard]] bool can_grow() const { return !returning_.empty(); }

  // Left out, including those that could be taken in again.
  [[nodiscard]] std::set<int> out() const;
  [[nodiscard]] int spares() const { return spares_.value_or(0); }

 private:
  std::optional<int> spares_;
  int missing_ = 0;
  std::set<int> left_out_, returning_;
  std::priority_queue<Ns, std::vector<Ns>, std::greater<>> in_repair_;
};

}  // namespace rehearse::sim
