// Which spells of slowness are on, and what that makes of each rank: of several at once the slowest counts.
#pragma once

#include <vector>

#include "sim/engine/contention.hpp"
#include "sim/engine/graph_runner.hpp"

namespace rehearse::sim {

class Spells {
 public:
  Spells(const std::vector<RankSpell>& spells, std::size_t ranks, Contention& contention);

  void begin(std::size_t spell) { turn(spell, true); }
  void end(std::size_t spell) { turn(spell, false); }

 private:
  void turn(std::size_t spell, bool on);
  void apply(std::uint32_t rank, bool ports);

  const std::vector<RankSpell>& spells_;
  Contention& contention_;
  std::vector<bool> on_;                             // [spell]
  std::vector<std::vector<std::uint32_t>> of_rank_;  // [simulated rank] spells; empty where there are none
  std::vector<std::vector<double>> slowdowns_;       // [simulated rank] slowdowns_of() it
};

}  // namespace rehearse::sim
