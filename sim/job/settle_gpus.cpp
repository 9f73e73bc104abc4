#include <fmt/format.h>

#include <string>
#include <string_view>

#include "sim/job/checks.hpp"
#include "sim/job/limits.hpp"
#include "sim/job/refusal.hpp"

namespace rehearse::sim {
namespace {

using config::Node;

// Products of four degrees of a million each leave 64 bits; doubles hold them well enough to compare with a million.
double product_of(const workloads::Parallel& parallel) {
  return static_cast<double>(parallel.tp) * parallel.cp * parallel.pp * (parallel.dp > 0 ? parallel.dp : 1);
}

std::string product_text(const workloads::Parallel& parallel) {
  const double value = product_of(parallel);
  const auto product = value <= most_gpus * 1e3 ? fmt::format("{:.0f}", value) : fmt::format("{:.3g}", value);
  if (parallel.dp == 0) return fmt::format("tp*cp*pp = {}*{}*{} = {}", parallel.tp, parallel.cp, parallel.pp, product);
  return fmt::format("tp*cp*pp*dp = {}*{}*{}*{} = {}", parallel.tp, parallel.cp, parallel.pp, parallel.dp, product);
}

// What made the product what it is: the degree, or the number of GPUs, that the command line set over the file's.
std::string_view to_blame(const Node& node, std::string_view otherwise = "parallel") {
  for (const std::string_view path : {"parallel.tp", "parallel.cp", "parallel.pp", "parallel.dp", "gpus"}) {
    const auto given = node.find_path(path);
    if (given && given->where().file.starts_with("--set ")) return path;
  }
  return otherwise;
}

// The number of GPUs where the job does not state it: what its layout asks for, or the whole cluster where dp is left out too.
int default_gpus(const Node& node, const Job& job) {
  if (job.workload.parallel.dp == 0) {
    if (job.system.cluster.max_gpus() > 0) return job.system.cluster.max_gpus();
    node.fail(fmt::format("gpus is missing, and cluster '{}' has as many nodes as a job needs", job.system.cluster.name),
              "give gpus or parallel.dp");
  }
  const double product = product_of(job.workload.parallel);
  if (product > most_gpus)
    refuse(node, to_blame(node), fmt::format("{}, more than {} GPUs", product_text(job.workload.parallel), most_gpus));
  return static_cast<int>(product);
}

// What would make the product equal to the number of GPUs.
std::string remedy(const workloads::Parallel& parallel, int gpus) {
  const double product = product_of(parallel);
  const double replica = product / parallel.dp;
  if (replica <= gpus && gpus % static_cast<int>(replica) == 0) return fmt::format("dp: {} would fit", gpus / static_cast<int>(replica));
  return product <= most_gpus ? fmt::format("gpus: {:.0f} would fit", product) : "";
}

void check_product(const Node& node, const workloads::Parallel& parallel, int gpus) {
  if (product_of(parallel) == gpus) return;
  refuse(node, to_blame(node), fmt::format("{}, but the job has {} GPUs", product_text(parallel), gpus), remedy(parallel, gpus));
}

int derived_dp(const Node& node, const workloads::Parallel& parallel, int gpus) {
  const double product = product_of(parallel);
  if (product > gpus) refuse(node, to_blame(node), fmt::format("{}, but the job has {} GPUs", product_text(parallel), gpus));
  const int replica = static_cast<int>(product);
  if (gpus % replica != 0) {
    refuse(node, to_blame(node, "gpus"), fmt::format("gpus ({}) is not a multiple of {}", gpus, product_text(parallel)),
           fmt::format("gpus: {} would work", multiples_near(gpus, replica)));
  }
  return gpus / replica;
}

// What jobs of several supernodes leave idle, so that their groups do not straddle them, a job takes that fits one of them with it.
void take_idle(System& system) {
  topology::ClusterSpec& cluster = system.cluster;
  const int all = cluster.supernode_gpus + cluster.supernode_spare_gpus;
  if (system.gpus <= cluster.supernode_gpus || system.gpus > all) return;
  cluster.supernode_gpus = all;
  cluster.supernode_spare_gpus = 0;
}

}  // namespace

void settle_gpu_count(const Node& node, Job& job) {
  const auto given = node.find("gpus");
  if (!given) job.system.gpus = default_gpus(node, job);
  const int most = job.system.cluster.max_gpus();
  if (most > 0 && job.system.gpus > most) {
    refuse(node, given ? "gpus" : "parallel",
           fmt::format("gpus ({}) is more than cluster '{}' has ({})", job.system.gpus, job.system.cluster.name, most));
  }
  take_idle(job.system);
}

void settle_gpus(const Node& node, Job& job) {
  settle_gpu_count(node, job);
  workloads::Parallel& parallel = job.workload.parallel;
  if (parallel.dp == 0) {
    parallel.dp = derived_dp(node, parallel, job.system.gpus);
  } else {
    check_product(node, parallel, job.system.gpus);
  }
}

}  // namespace rehearse::sim
