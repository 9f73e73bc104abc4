// Spells of slowness as changes of speed at instants.
#pragma once

#include "sim/federated/simulate_round.hpp"

namespace rehearse::federated {

struct SpeedChange {
  double at_s = 0;
  SlowSpell::What what = SlowSpell::What::device;
  std::size_t of_class = 0;  // device
  std::size_t speed = 0;     // device: which of its speeds
  double factor = 1;         // media and server: so many times slower than as described
};

class SlowSpells {
 public:
  // `devices`: of the simulated classes. Spells of one thing that overlap multiply.
  SlowSpells(const std::vector<SlowSpell>& spells, const std::vector<std::size_t>& devices);

  [[nodiscard]] const std::vector<SpeedChange>& changes() const { return changes_; }
  // Relative compute speeds that a class is switched between, 1 first.
  [[nodiscard]] const std::vector<double>& speeds(std::size_t of_class) const { return speeds_[of_class]; }

 private:
  void add(const std::vector<SlowSpell>& spells, const SlowSpell& same, std::size_t of_class);
  std::vector<SpeedChange> changes_;
  std::vector<std::vector<double>> speeds_;
};

}  // namespace rehearse::federated
