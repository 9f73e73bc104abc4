// What a search is held to: all that it may choose from, one by one.
#pragma once

#include <vector>

#include "sim/serving/tune_candidates.hpp"

namespace rehearse::tests {

// Every deployment that the inventory has room for: each plan of pools that do both, and each pair of plans of prompts and answers, in
// every number of instances. visit(pools, cost).
template <class Visit>
void for_every_deployment(const sim::TuneSides& sides, Visit visit) {
  const std::size_t parts = sides.together.size();
  for (std::size_t one = 0; one < parts; ++one) {
    for (const sim::PoolCandidate& plan : sides.together[one]) {
      for (int n = 1; n <= sides.most(plan); ++n) visit(std::vector{with_number(plan, n)}, n * plan.side.cost);
    }
    for (std::size_t other = 0; other < parts; ++other) {
      for (const sim::PoolCandidate& prompts : sides.prompts[one]) {
        for (const sim::PoolCandidate& decodes : sides.decodes[other]) {
          for (int p = 1; p <= sides.most(prompts); ++p) {
            for (int d = 1; d <= sides.most(decodes); ++d) {
              if (one == other && p * prompts.side.gpus + d * decodes.side.gpus > sides.spec.inventory[one]) continue;
              visit(std::vector{with_number(prompts, p), with_number(decodes, d)}, p * prompts.side.cost + d * decodes.side.cost);
            }
          }
        }
      }
    }
  }
}

}  // namespace rehearse::tests
