#include "workloads/rank_grid.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>

#include "workloads/schedule.hpp"

namespace rehearse::workloads {

RankGrid::RankGrid(const Parallel& parallel, bool mirrored, int shard_group)
    : shard_group_(parallel.dp * parallel.cp), mirrored_(mirrored) {
  if (shard_group > 0 && shard_group < shard_group_) shard_group_ = shard_group;
  tp_.size = parallel.tp;
  cp_.size = parallel.cp;
  dp_.size = parallel.dp;
  pp_.size = parallel.pp;
  for (const std::string& name : parallel.order) {
    // ep is no dimension of its own: its ranks are taken out of the (cp x dp) plane.
    Dimension* dimension = name == "tp" ? &tp_ : name == "cp" ? &cp_ : name == "dp" ? &dp_ : name == "pp" ? &pp_ : nullptr;
    if (dimension == nullptr) continue;
    dimension->stride = size_;
    size_ *= dimension->size;
  }
  etp_.size = parallel.etp;
  ep_.size = parallel.ep;
  edp_.size = parallel.expert_replicas();
  int stride = 1;
  for (const std::string& name : parallel.order) {
    if (name == "pp") {
      expert_pp_stride_ = stride;
      stride *= pp_.size;
    }
    Dimension* dimension = name == "tp" ? &etp_ : name == "ep" ? &ep_ : name == "dp" ? &edp_ : nullptr;
    if (dimension == nullptr) continue;
    dimension->stride = stride;
    stride *= dimension->size;
  }
}

const RankGrid::Dimension& RankGrid::dimension(GroupKind along) const {
  switch (along) {
    case GroupKind::tp:
      return tp_;
    case GroupKind::cp:
      return cp_;
    case GroupKind::dp:
      return dp_;
    case GroupKind::pp:
      return pp_;
    case GroupKind::ep:
      return ep_;
    case GroupKind::etp:
      return etp_;
    case GroupKind::edp:
      return edp_;
    default:
      throw std::invalid_argument("a group that is not along one dimension");
  }
}

int RankGrid::ranks_in_domain(GroupKind along, int domain) const {
  const Dimension& of = dimension(along);
  return of.stride >= domain ? 1 : std::min(of.size, domain / of.stride);
}

std::vector<int> RankGrid::along(const Dimension& dimension, int rank) const {
  const int first = rank - rank / dimension.stride % dimension.size * dimension.stride;
  std::vector<int> members;
  members.reserve(static_cast<std::size_t>(dimension.size));
  for (int i = 0; i < dimension.size; ++i) members.push_back(first + i * dimension.stride);
  return members;
}

Coordinates RankGrid::coordinates(int rank) const {
  const auto digit = [rank](const Dimension& d) { return rank / d.stride % d.size; };
  return {digit(tp_), digit(cp_), digit(dp_), digit(pp_)};
}

int RankGrid::rank(const Coordinates& at) const {
  return at.tp * tp_.stride + at.cp * cp_.stride + at.dp * dp_.stride + at.pp * pp_.stride;
}

std::vector<int> RankGrid::group(GroupKind kind, int rank) const {
  const Coordinates own = coordinates(rank);
  std::vector<int> members;
  const auto add = [&](Coordinates at) { members.push_back(this->rank(at)); };
  switch (kind) {
    case GroupKind::tp:
    case GroupKind::cp:
    case GroupKind::dp:
    case GroupKind::pp:
    case GroupKind::ep:
    case GroupKind::etp:
      return along(dimension(kind), rank);
    case GroupKind::dp_cp: {
      const std::vector<int> stages = same_parameters(own.pp);
      members.reserve(stages.size() * static_cast<std::size_t>(dp_.size * cp_.size));
      for (const int stage : stages) {
        const int first = this->rank({own.tp, 0, 0, stage});
        for (int d = 0; d < dp_.size; ++d)
          for (int c = 0; c < cp_.size; ++c) members.push_back(first + d * dp_.stride + c * cp_.stride);
      }
      break;
    }
    case GroupKind::edp:
      for (const int stage : same_parameters(own.pp)) {
        const std::vector<int> there = along(edp_, at_stage(rank, stage));
        members.insert(members.end(), there.begin(), there.end());
      }
      break;
    case GroupKind::embedding:
      add({own.tp, own.cp, own.dp, 0});
      if (pp_.size > 1) add({own.tp, own.cp, own.dp, pp_.size - 1});
      break;
    case GroupKind::shard:
    case GroupKind::replicas: {
      const int place = own.dp * cp_.size + own.cp;  // in dp_cp order
      const bool inside = kind == GroupKind::shard;
      const int first = inside ? place / shard_group_ * shard_group_ : place % shard_group_;
      const int last = inside ? first + shard_group_ : dp_.size * cp_.size;
      for (int i = first; i < last; i += inside ? 1 : shard_group_) add({own.tp, i % cp_.size, i / cp_.size, own.pp});
      break;
    }
    case GroupKind::to_host:
    case GroupKind::from_host:
    case GroupKind::host_memory:
      members.push_back(rank);
      break;
  }
  return members;
}

bool RankGrid::spans_dimensions(GroupKind kind) const {
  if (kind == GroupKind::shard || kind == GroupKind::replicas) return shard_group_ == dp_.size * cp_.size;
  return !mirrored_ || (kind != GroupKind::dp_cp && kind != GroupKind::edp);
}

std::vector<int> RankGrid::same_parameters(int stage) const {
  const int other = pp_.size - 1 - stage;
  if (!mirrored_ || other == stage) return {stage};
  return {std::min(stage, other), std::max(stage, other)};
}

int RankGrid::at_stage(int rank, int stage) const {
  Coordinates at = coordinates(rank);
  at.pp = stage;
  return this->rank(at);
}

int RankGrid::next_stage(int rank) const { return at_stage(rank, (coordinates(rank).pp + 1) % pp_.size); }

int RankGrid::previous_stage(int rank) const { return at_stage(rank, (coordinates(rank).pp + pp_.size - 1) % pp_.size); }

RankGrid rank_grid(const Workload& workload) {
  return RankGrid(workload.parallel, ScheduleRegistry::get(workload.schedule).mirrors(), workload.optimizer.shard_group);
}

}  // namespace rehearse::workloads
