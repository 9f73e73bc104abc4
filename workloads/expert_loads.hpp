// How many tokens every expert gets, after routing and capacity.
#pragma once

#include <memory>
#include <vector>

#include "workloads/plan.hpp"
#include "workloads/routing.hpp"

namespace rehearse::workloads {

// Of all members of an expert-parallel group (times etp) together, for one layer and micro-batch. Counted in (token, expert) pairs.
struct LayerLoad {
  std::vector<double> tokens;    // [expert]
  std::vector<double> received;  // [ep rank] that its experts get
  int hottest = 0;               // the first of the ranks that get most
  double dropped = 0;            // beyond the experts' capacity
  // Of senders that differ (otherwise null and empty): pairs that the rank at place i of the group sends to the one at place j, [i * ep +
  // j], and what of its pairs was dropped, [i]. etp > 1: of one of the group's planes; they send alike.
  std::shared_ptr<const std::vector<double>> sent;
  std::vector<double> dropped_by;
};

// A token chooses an expert once: none gets more than the share `most`, every token. What is beyond goes to the others in proportion.
void choose_once(std::vector<double>& shares, double most);

class ExpertLoads {
 public:
  // Of one step. The workload must have experts, and outlive this.
  explicit ExpertLoads(const Workload& workload, int step = 0);

  // All experts get the same at every place.
  [[nodiscard]] bool even() const { return even_; }
  // All ranks of a group send in the same proportions.
  [[nodiscard]] bool senders_alike() const { return alike_; }
  [[nodiscard]] const LayerLoad& at(int layer, int microbatch) const;
  // Pairs that the experts of ep rank `rank` get.
  [[nodiscard]] double received(int rank, int layer, int microbatch) const {
    return at(layer, microbatch).received[static_cast<std::size_t>(rank)];
  }
  // Pairs of one rank's own tokens, before drops; balanced with what fills them up.
  [[nodiscard]] double sent_by_each() const { return sent_by_each_; }

 private:
  [[nodiscard]] LayerLoad load(int layer, int microbatch) const;
  [[nodiscard]] LayerLoad load_of_all(int layer, int microbatch) const;
  [[nodiscard]] LayerLoad load_by_sender(int layer, int microbatch) const;
  [[nodiscard]] double filled_up(double rows, double pairs) const;
  [[nodiscard]] std::vector<double> choices(const RoutingPlace& place, double pairs) const;
  const Workload& workload_;
  int step_, per_rank_;
  bool even_, alike_;
  double own_pairs_ = 0, sent_by_each_ = 0;
  using Loads = std::vector<std::vector<std::unique_ptr<const LayerLoad>>>;  // [layer][micro-batch] null until it is asked for
  // Routing is drawn once however many ask for it: what the last asker on this thread drew, when the routing is the same.
  [[nodiscard]] std::shared_ptr<Loads> drawn() const;
  std::shared_ptr<Loads> loads_;
};

}  // namespace rehearse::workloads
