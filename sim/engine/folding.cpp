#include "sim/engine/folding.hpp"

#include <array>
#include <map>
#include <set>
#include <tuple>

#include "workloads/rank_grid.hpp"
#include "workloads/routing.hpp"

namespace rehearse::sim {
namespace {

using workloads::Communication;
using workloads::GroupKind;
using workloads::RankGrid;

using Colours = std::vector<std::uint32_t>;

constexpr double probe_bytes = 1 << 20;  // any size serves to tell two places on the cluster apart
constexpr std::array dense_kinds{GroupKind::tp,        GroupKind::cp,    GroupKind::dp_cp,
                                 GroupKind::embedding, GroupKind::shard, GroupKind::replicas};
constexpr std::array expert_kinds{GroupKind::ep, GroupKind::etp, GroupKind::edp};

using Signature = std::tuple<std::string, double, double, double, double, double>;

Signature signature(const CallPrice& price) {
  return {price.algorithm, price.alpha_s, price.intra_bytes, price.inter_bytes, price.intra_bytes_per_s, price.inter_bytes_per_s};
}

// Numbers equal keys alike, in order of first appearance.
template <class Key>
class Numbering {
 public:
  std::uint32_t operator()(Key key) {
    return numbers_.try_emplace(std::move(key), static_cast<std::uint32_t>(numbers_.size())).first->second;
  }
  [[nodiscard]] std::size_t size() const { return numbers_.size(); }

 private:
  std::map<Key, std::uint32_t> numbers_;
};

class Refinement {
 public:
  Refinement(const workloads::Workload& workload, const CommunicationModel& model, const StepFaults& faults)
      : grid_(workloads::rank_grid(workload)), model_(model), kinds_(dense_kinds.begin(), dense_kinds.end()) {
    if (workload.model.moe) {
      for (const GroupKind kind : expert_kinds) kinds_.push_back(kind);
      even_ = workloads::RoutingRegistry::get(workload.experts.routing).even();
    }
    for (const GroupKind kind : kinds_) list_groups(kind);
    colour_by_place(faults);
    while (refine()) {
    }
  }
  [[nodiscard]] const Colours& colours() const { return colours_; }
  [[nodiscard]] const RankGrid& grid() const { return grid_; }

 private:
  void list_groups(GroupKind kind) {
    std::vector<std::vector<int>>& groups = groups_[kind];
    std::vector<int>& group_of = group_of_[kind];
    group_of.assign(grid_.size(), -1);
    for (int rank = 0; rank < grid_.size(); ++rank) {
      if (group_of[rank] >= 0) continue;
      const std::vector<int>& members = groups.emplace_back(grid_.group(kind, rank));
      // Middle stages name the end ranks of their pipeline as their embedding group without being members; harmless for the partition.
      for (const int member : members) group_of[member] = static_cast<int>(groups.size()) - 1;
      group_of[rank] = static_cast<int>(groups.size()) - 1;
    }
  }

  [[nodiscard]] Signature send_signature(int from, int to) const {
    const std::array members{from, to};
    return signature(
        model_.price({"", workloads::CollectiveKind::send_recv, GroupKind::pp, probe_bytes, workloads::Pass::forward}, members));
  }

  // What is wrong with each rank, as a number; 0 where nothing is.
  [[nodiscard]] std::vector<std::uint32_t> marks(const StepFaults& faults) const {
    using Mark = std::tuple<double, double, std::set<std::size_t>>;
    std::map<int, std::set<std::size_t>> fails;
    for (std::size_t i = 0; i < faults.failures.size(); ++i) {
      for (const int rank : faults.failures[i].ranks) fails[rank].insert(i);
    }
    Numbering<Mark> number;
    static_cast<void>(number(Mark{1, 1, {}}));
    std::vector<std::uint32_t> marks;
    for (int rank = 0; rank < grid_.size(); ++rank) {
      const auto failing = fails.find(rank);
      marks.push_back(
          number({faults.slow.gpu(rank), faults.slow.port(rank), failing == fails.end() ? std::set<std::size_t>{} : failing->second}));
    }
    return marks;
  }

  void colour_by_place(const StepFaults& faults) {
    const std::vector<std::uint32_t> mark = marks(faults);
    Numbering<Signature> prices;
    std::map<GroupKind, std::vector<std::uint32_t>> price_of_group;
    for (const GroupKind kind : kinds_) {
      for (const std::vector<int>& members : groups_.at(kind)) {
        const Communication probe{"", workloads::CollectiveKind::all_gather, kind, probe_bytes, workloads::Pass::forward};
        price_of_group[kind].push_back(prices(signature(model_.price(probe, members))));
      }
    }
    Numbering<std::vector<std::uint32_t>> number;
    for (int rank = 0; rank < grid_.size(); ++rank) {
      std::vector<std::uint32_t> key{static_cast<std::uint32_t>(grid_.coordinates(rank).pp), mark[static_cast<std::size_t>(rank)]};
      for (const GroupKind kind : kinds_) key.push_back(price_of_group[kind][group_of_[kind][rank]]);
      key.push_back(prices(send_signature(rank, grid_.next_stage(rank))));
      key.push_back(prices(send_signature(rank, grid_.previous_stage(rank))));
      if (!even_) key.push_back(static_cast<std::uint32_t>(grid_.expert_rank(rank)));  // its experts' tokens are its own
      colours_.push_back(number(std::move(key)));
    }
    classes_ = number.size();
  }

  // One round of colour refinement; false when nothing was split.
  bool refine() {
    std::map<GroupKind, std::vector<std::uint32_t>> colour_of_group;
    for (const GroupKind kind : kinds_) {
      Numbering<std::set<std::uint32_t>> number;
      for (const std::vector<int>& members : groups_.at(kind)) {
        std::set<std::uint32_t> colours;
        for (const int member : members) colours.insert(colours_[member]);
        colour_of_group[kind].push_back(number(std::move(colours)));
      }
    }
    Numbering<std::vector<std::uint32_t>> number;
    Colours next;
    for (int rank = 0; rank < grid_.size(); ++rank) {
      std::vector<std::uint32_t> key{colours_[rank], colours_[grid_.next_stage(rank)], colours_[grid_.previous_stage(rank)]};
      for (const GroupKind kind : kinds_) key.push_back(colour_of_group[kind][group_of_[kind][rank]]);
      next.push_back(number(std::move(key)));
    }
    const bool split = number.size() > classes_;
    classes_ = number.size();
    colours_ = std::move(next);
    return split;
  }

  RankGrid grid_;
  const CommunicationModel& model_;
  std::vector<GroupKind> kinds_;
  bool even_ = true;
  std::map<GroupKind, std::vector<std::vector<int>>> groups_;
  std::map<GroupKind, std::vector<int>> group_of_;
  Colours colours_;
  std::size_t classes_ = 0;
};

}  // namespace

workloads::Folding fold(const workloads::Workload& workload, const CommunicationModel& model, const StepFaults& faults) {
  const Refinement refinement(workload, model, faults);
  workloads::Folding folding;
  folding.class_of = refinement.colours();
  for (int rank = 0; rank < refinement.grid().size(); ++rank) {
    const std::uint32_t colour = folding.class_of[rank];
    // Colours are numbered by first appearance, so the first rank of a class is its representative.
    if (colour == folding.ranks.size()) {
      folding.ranks.push_back({rank, refinement.grid().coordinates(rank).pp, 1});
    } else {
      ++folding.ranks[colour].multiplicity;
    }
  }
  return folding;
}

}  // namespace rehearse::sim
