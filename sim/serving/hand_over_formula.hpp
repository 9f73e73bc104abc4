// Hand-overs between two sides by formula: a mean one over all pairs of pools.
#pragma once

#include <span>
#include <vector>

#include "sim/serving/exposed_hand_over.hpp"
#include "sim/serving/network_transfers.hpp"
#include "sim/serving/pool_formula.hpp"

namespace rehearse::sim {

struct MeanHandOver {
  double waiting_s = 0, transfer_s = 0, bytes = 0;
  double aligning_s = 0;  // of transfer_s
  double links_busy = 0;  // share of the time of the busiest link; from 1 on they are beyond their capacity
};

class HandOverFormula {
 public:
  // Of caches of so many tokens, of which `there` are where they are decoded; request_s: of the decoding engine.
  HandOverFormula(std::span<const PoolFormula> prompts, const NetworkTransfers& transfers, double tokens, double request_s,
                  std::size_t receivers, double there = 0);

  // At a rate of all requests, of which the pools of each side have these shares.
  [[nodiscard]] MeanHandOver at(double rate_per_s, const std::vector<double>& prompts, const std::vector<double>& decodes) const;

 private:
  struct Lane {
    ExposedHandOver exposed;
    double links_s = 0, bytes = 0;  // of a request: of links that nobody shares; on the wire
    NetworkTransfers::Busiest busiest;
  };
  std::vector<Lane> lanes_;  // [sender * receivers + receiver]
  std::size_t receivers_;
};

}  // namespace rehearse::sim
