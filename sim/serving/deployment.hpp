// A serving job made ready to run: prices of passes, caches, the requests.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "sim/serving/capacity.hpp"
#include "sim/serving/network_transfers.hpp"
#include "sim/serving/serving_job.hpp"
#include "sim/serving/simulation.hpp"

namespace rehearse::sim {

struct PassWalks;

struct PoolDeployment {
  const Pool* pool = nullptr;
  std::shared_ptr<const OperatorPassPrice> price;
  InstanceMemory memory;
  InstanceRules rules;               // of a whole instance, all lanes together
  std::shared_ptr<PassWalks> walks;  // of others that differ in how many sequences they hold alone; nothing: it walks for itself
};

struct Deployment {
  std::vector<PoolDeployment> pools;
  std::shared_ptr<NetworkTransfers> transfers;  // between two pools
  std::string misfit;                           // what does not fit into the memory; empty when all does
};

// The job and the pool must outlive them.
[[nodiscard]] PoolDeployment deploy_pool(const ServingJob& job, const Pool& pool);
// The same of one that differs from another in its role and in the limits of sequences and tokens alone, by whose prices it goes.
[[nodiscard]] PoolDeployment deploy_pool(const ServingJob& job, const Pool& pool, const std::shared_ptr<const PoolDeployment>& priced);
[[nodiscard]] Deployment deploy(const ServingJob& job);
[[nodiscard]] ServingSetup setup_of(const ServingJob& job, const Deployment& deployment);

}  // namespace rehearse::sim
