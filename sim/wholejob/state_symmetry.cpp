#include "sim/wholejob/state_symmetry.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <set>

#include "config/random.hpp"
#include "sim/communication_of.hpp"
#include "sim/engine/folding.hpp"
#include "sim/engine/prepared_step.hpp"
#include "workloads/rank_grid.hpp"

namespace rehearse::sim {
namespace {

using workloads::GroupKind;

constexpr std::array dense_kinds{GroupKind::tp,        GroupKind::cp,    GroupKind::dp_cp,
                                 GroupKind::embedding, GroupKind::shard, GroupKind::replicas};
constexpr std::array expert_kinds{GroupKind::ep, GroupKind::etp, GroupKind::edp};

// Chains hashes; 64 bits make two colours of a job's ranks and a million states collide with less than 1e-6.
std::uint64_t joined(std::uint64_t hash, std::uint64_t value) { return config::mixed(hash * config::golden_gamma + value); }

std::size_t distinct(std::vector<std::uint64_t> colours) {
  std::ranges::sort(colours);
  return static_cast<std::size_t>(std::unique(colours.begin(), colours.end()) - colours.begin());
}

}  // namespace

StateSymmetry::StateSymmetry(const Job& job) : job_(job), alike_(!job.system.simulation.all_ranks) {
  if (!alike_) return;
  const CommunicationModel model = communication_of(job.system, job.workload);
  Job healthy = job;
  healthy.system.simulation.faults = {};
  healthy_ = fold(healthy.system, healthy.workload, compiled_for_simulation(healthy), model).ranks.class_of;
  const workloads::RankGrid grid = workloads::rank_grid(job.workload);
  for (const GroupKind kind : dense_kinds) relations_.push_back(relation_of(kind));
  if (job.workload.model.moe) {
    for (const GroupKind kind : expert_kinds) relations_.push_back(relation_of(kind));
  }
  relations_.push_back(neighbours(job.system.cluster.gpus_per_node));
  relations_.push_back(neighbours(job.system.cluster.gpus_per_node * std::max(1, job.system.cluster.network.nodes_per_leaf)));
  for (int rank = 0; rank < grid.size(); ++rank) {
    next_.push_back(grid.next_stage(rank));
    previous_.push_back(grid.previous_stage(rank));
  }
}

StateSymmetry::Relation StateSymmetry::relation_of(GroupKind kind) const {
  const workloads::RankGrid grid = workloads::rank_grid(job_.workload);
  constexpr std::size_t none = SIZE_MAX;
  Relation relation{{}, std::vector<std::size_t>(static_cast<std::size_t>(grid.size()), none)};
  for (int rank = 0; rank < grid.size(); ++rank) {
    if (relation.block_of[static_cast<std::size_t>(rank)] != none) continue;
    const std::vector<int>& members = relation.blocks.emplace_back(grid.group(kind, rank));
    for (const int member : members) relation.block_of[static_cast<std::size_t>(member)] = relation.blocks.size() - 1;
    relation.block_of[static_cast<std::size_t>(rank)] = relation.blocks.size() - 1;
  }
  return relation;
}

StateSymmetry::Relation StateSymmetry::neighbours(int ranks_per_block) const {
  Relation relation;
  for (int rank = 0; rank < job_.system.gpus; ++rank) {
    if (rank % ranks_per_block == 0) relation.blocks.emplace_back();
    relation.blocks.back().push_back(rank);
    relation.block_of.push_back(relation.blocks.size() - 1);
  }
  return relation;
}

StateSymmetry::Colours StateSymmetry::refined(const Colours& colours) const {
  Colours next;
  for (std::size_t rank = 0; rank < colours.size(); ++rank) {
    const std::uint64_t own = joined(colours[rank], colours[static_cast<std::size_t>(next_[rank])]);
    next.push_back(joined(own, colours[static_cast<std::size_t>(previous_[rank])]));
  }
  for (const Relation& relation : relations_) {
    Colours of_block;
    for (const std::vector<int>& members : relation.blocks) {
      std::uint64_t sum = 0;  // in whatever order
      for (const int member : members) sum += config::mixed(colours[static_cast<std::size_t>(member)]);
      of_block.push_back(sum);
    }
    for (std::size_t rank = 0; rank < next.size(); ++rank) next[rank] = joined(next[rank], of_block[relation.block_of[rank]]);
  }
  return next;
}

StateSymmetry::Key StateSymmetry::key(const SlowParts& slow) const {
  if (!alike_ || (job_.system.simulation.collectives == Fidelity::step && !slow.ports.empty())) return {};
  Colours colours;
  for (std::size_t rank = 0; rank < healthy_.size(); ++rank) {
    const std::uint64_t gpu = joined(healthy_[rank], std::bit_cast<std::uint64_t>(slow.gpu(static_cast<int>(rank))));
    colours.push_back(joined(gpu, std::bit_cast<std::uint64_t>(slow.port(static_cast<int>(rank)))));
  }
  for (std::size_t before = 0, now = distinct(colours); now > before; before = now, now = distinct(colours)) colours = refined(colours);
  std::uint64_t sum = 0;
  for (const std::uint64_t colour : colours) sum += config::mixed(colour);
  return {std::bit_cast<std::uint64_t>(slow.trunks), static_cast<std::uint64_t>(slow.lost_spines), sum};
}

}  // namespace rehearse::sim
