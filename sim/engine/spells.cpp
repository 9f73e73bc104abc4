#include "sim/engine/spells.hpp"

#include <algorithm>
#include <set>

namespace rehearse::sim {

std::vector<double> slowdowns_of(const std::vector<RankSpell>& spells, std::uint32_t rank) {
  std::set<double> all;
  for (const RankSpell& spell : spells) {
    if (!spell.ports && std::ranges::find(spell.ranks, rank) != spell.ranks.end()) all.insert(spell.slowdown);
  }
  return {all.begin(), all.end()};
}

Spells::Spells(const std::vector<RankSpell>& spells, std::size_t ranks, Contention& contention)
    : spells_(spells), contention_(contention), on_(spells.size()) {
  if (spells.empty()) return;
  of_rank_.resize(ranks);
  slowdowns_.resize(ranks);
  for (std::uint32_t i = 0; i < spells.size(); ++i) {
    for (const std::uint32_t rank : spells[i].ranks) of_rank_[rank].push_back(i);
  }
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    if (!of_rank_[rank].empty()) slowdowns_[rank] = slowdowns_of(spells, rank);
  }
}

void Spells::turn(std::size_t spell, bool on) {
  on_[spell] = on;
  for (const std::uint32_t rank : spells_[spell].ranks) apply(rank, spells_[spell].ports);
}

void Spells::apply(std::uint32_t rank, bool ports) {
  double slowest = 1;
  for (const std::uint32_t i : of_rank_[rank]) {
    if (on_[i] && spells_[i].ports == ports) slowest = std::max(slowest, spells_[i].slowdown);
  }
  if (ports) return contention_.slow_port(rank, slowest);
  const std::vector<double>& known = slowdowns_[rank];
  const auto which = std::ranges::find(known, slowest) - known.begin();
  contention_.slow_gpu(rank, slowest == 1 ? 0 : static_cast<std::size_t>(which) + 1);
}

}  // namespace rehearse::sim
