// Which states of a cluster give the same step because the job looks the same from them: the same slow parts somewhere else.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "sim/job/job.hpp"

namespace rehearse::sim {

// Compares the stable colours of two states (Weisfeiler and Leman 1968): ranks start with their class in the healthy job and what is slow
// of them, and are told apart by the ranks with which they share a group, a node, a leaf switch or a pipeline. States with equally many
// ranks of each colour fold to the same classes with the same neighbours, and a folded step depends on nothing else. Where it does, no two
// states are alike: with `ranks: all` routes decide who shares a link, with `collectives: step` a slow port's place in the rounds counts.
class StateSymmetry {
 public:
  explicit StateSymmetry(const Job& job);  // must outlive this

  using Key = std::vector<std::uint64_t>;
  // Equal keys: the same step. Empty: like no other.
  [[nodiscard]] Key key(const SlowParts& slow) const;

 private:
  using Colours = std::vector<std::uint64_t>;
  // Ranks in blocks, each rank pointing to one: for a middle stage, the embedding's ends of its pipeline.
  struct Relation {
    std::vector<std::vector<int>> blocks;
    std::vector<std::size_t> block_of;  // [rank]
  };
  [[nodiscard]] Relation relation_of(workloads::GroupKind kind) const;
  [[nodiscard]] Relation neighbours(int ranks_per_block) const;
  [[nodiscard]] Colours refined(const Colours& colours) const;

  const Job& job_;
  bool alike_ = false;  // some states may be
  std::vector<std::uint32_t> healthy_;
  std::vector<Relation> relations_;
  std::vector<int> next_, previous_;  // [rank] in the pipeline
};

}  // namespace rehearse::sim
