// Prices of a plan's communications, each distinct one worked out once.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "sim/cost/communication.hpp"
#include "workloads/operators.hpp"

namespace rehearse::sim {

// Asked for a pipeline stage: where its groups of a kind lie differently on the cluster, the slowest counts. Remembers, so that each thread
// needs its own.
class PriceBook {
  struct Call {
    workloads::CollectiveKind kind;
    workloads::GroupKind group;
    int place;
    bool to_next;  // a hop of the pipeline from there
    double bytes;
    bool alone = false;
    bool operator==(const Call&) const = default;
  };
  struct Hash {
    std::size_t operator()(const Call& call) const;
  };

 public:
  struct Times {
    double seconds = 0;
    PortTimes ports;
  };
  using Calls = std::unordered_map<Call, Times, Hash>;  // never walked through

  // All must outlive it. `shared`: calls that plans with the same model and the same grid have in common.
  PriceBook(const CommunicationModel& model, const workloads::RankGrid& grid, int stages, Calls* shared = nullptr);
  // The same calls while other stages leave NICs and host memories to each, but those of `crowded`, which take their price whoever is at
  // work. `book` must outlive it.
  [[nodiscard]] static PriceBook alone(PriceBook& book, std::optional<workloads::GroupKind> crowded) { return {book, crowded}; }
  PriceBook(const PriceBook&) = delete;
  PriceBook& operator=(const PriceBook&) = delete;

  // Stages whose groups lie alike on the cluster pay the same for every call: the first of them stands for all.
  [[nodiscard]] int place(int stage) const { return places_[static_cast<std::size_t>(stage)]; }

  // Of a call alone.
  [[nodiscard]] Times times(const workloads::Communication& what, int stage);
  [[nodiscard]] double seconds(const workloads::Communication& what, int stage) { return times(what, stage).seconds; }
  // alone: while other stages leave NICs and host memories to it.
  [[nodiscard]] const Times& times(workloads::CollectiveKind kind, workloads::GroupKind group, double bytes, int stage, bool alone = false);
  [[nodiscard]] double seconds(workloads::CollectiveKind kind, workloads::GroupKind group, double bytes, int stage, bool alone = false) {
    return times(kind, group, bytes, stage, alone).seconds;
  }
  // As the model's.
  [[nodiscard]] const std::vector<double>& stages_at_nics() const { return model_.stages_at_nics(); }
  [[nodiscard]] const std::vector<double>& stages_at_hosts();
  // A message to the next stage (of the last: to the first): the slowest of the replicas' hops, of which some may stay in a node.
  [[nodiscard]] const Times& hop(double bytes, int stage);
  // What `make` says of an optimizer that updates so many parameters on a GPU of the stage; asked once.
  template <class Make>
  [[nodiscard]] double update_s(double parameters, const workloads::HeldParameters& held, int stage, Make make) {
    const auto [it, added] =
        updates_.try_emplace({place(stage), parameters, held.gradients, held.layers, held.dense_updated, held.experts_updated}, 0.0);
    if (added) it->second = make();
    return it->second;
  }

 private:
  PriceBook(PriceBook& book, std::optional<workloads::GroupKind> crowded)
      : model_(book.model_), grid_(book.grid_), places_(book.places_), known_(book.known_), alone_(true), crowded_(crowded) {}
  [[nodiscard]] bool leaves(workloads::GroupKind group) const { return alone_ && group != crowded_; }

  [[nodiscard]] int first_rank(int stage) const { return grid_.rank({0, 0, 0, stage}); }
  [[nodiscard]] Times slowest(const workloads::Communication& what, int stage, bool alone = false);
  [[nodiscard]] Times slowest_hop(double bytes, int stage) const;
  // The first ranks of groups of this kind that lie differently, one of each.
  [[nodiscard]] const std::vector<int>& leaders(workloads::GroupKind group, int stage);

  const CommunicationModel& model_;
  const workloads::RankGrid& grid_;
  std::vector<int> places_;
  std::map<std::pair<workloads::GroupKind, int>, std::vector<int>> leaders_;
  Calls own_;
  Calls& known_;
  bool alone_ = false;
  std::optional<workloads::GroupKind> crowded_;
  std::map<std::tuple<int, double, double, double, double, double>, double> updates_;
  std::optional<std::vector<double>> stages_at_hosts_;
};

}  // namespace rehearse::sim
