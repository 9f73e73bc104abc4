#include <algorithm>

#include "tests/fuzz/target.hpp"
#include "topology/fabric.hpp"

namespace rehearse::fuzz {
namespace {

class Cluster final : public Target {
  void read(const std::string& input) const override {
    const topology::ClusterSpec cluster = topology::read_cluster(config::Node::load_text(input, "cluster.yaml"), "cluster");
    constexpr int most = 64;  // GPUs: a fabric is built in no time
    const int gpus = cluster.max_gpus() > 0 ? std::min(cluster.max_gpus(), most) : most;
    static_cast<void>(topology::Fabric::build(cluster, gpus).cuts());
  }
};

const TargetRegistry::Registration<Cluster> cluster_registration("cluster");

}  // namespace
}  // namespace rehearse::fuzz
