// What the plan that we would have picked costs, where many plans of one model on the same GPUs were measured (docs/validation.md).
#pragma once

#include <string>
#include <vector>

#include "sim/validate/outcome.hpp"

namespace rehearse::sim {

// Of the cases that share a `sweep:` key and either were measured or ran out of memory.
struct SweepRegret {
  std::string sweep;
  int cases = 0, ran = 0;
  // Ids: the fastest by formula of those that surely fit, where none does the one of those said to fit whose throughput is largest when
  // multiplied by its chance to fit; the fastest as measured. "": none
  std::string picked, best;
  // 1 - measured throughput of the picked case / of the best one; of the best of the five that we would have tried. 1 where that ran out of
  // memory, and where no case that ran is said to fit.
  double regret = 1, of_five = 1;
  bool out_of_memory = false;  // what was picked
};

// Section: a row per sweep, and their means, written by the reporter "validation-regret".
using SweepRegrets = std::vector<SweepRegret>;

// By sweep, sorted; those with fewer than two cases that ran are left out, they have nothing to pick from.
[[nodiscard]] SweepRegrets regrets_of(const std::vector<Outcome>& outcomes);

}  // namespace rehearse::sim
