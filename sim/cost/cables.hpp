// What communications put on the NICs and cables of a network that is no tree (torus, dragonfly, graph), each over the route that the
// fabric gives it.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "topology/fabric.hpp"

namespace rehearse::sim {

class Cables {
 public:
  struct Flow {
    int from = 0, to = 0;  // ranks
    int rail = -1;         // NIC of both nodes; -1: the sender's own
    double bytes = 0;
  };
  using Rounds = std::vector<std::vector<Flow>>;  // the flows of a round are on their way at once

  // Of a job on the first `gpus` GPUs; null where the network is a tree, whose trunks have a formula. That of the last cluster which a
  // thread asked for is kept.
  static std::shared_ptr<Cables> of(const topology::ClusterSpec& cluster, int gpus);
  explicit Cables(const topology::ClusterSpec& cluster, int gpus) : fabric_(topology::Fabric::build(cluster, gpus)) {}

  // Of the busiest link in every round, one round after another. Worked out once for a name, for which `flows` must be a function of the
  // cluster and the name alone. From any thread.
  [[nodiscard]] double seconds(const std::string& name, const std::function<Rounds()>& flows);

 private:
  [[nodiscard]] double round_s(std::span<const Flow> flows) const;

  topology::Fabric fabric_;
  std::map<std::string, double> known_;
  std::mutex mutex_;
};

}  // namespace rehearse::sim
