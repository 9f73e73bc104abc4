// A deployment under a load, simulated request by request on sim/engine/machine.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "sim/serving/instance.hpp"
#include "sim/serving/service_fault.hpp"
#include "sim/serving/service_record.hpp"
#include "sim/serving/transfers.hpp"
#include "workloads/serving/load.hpp"

namespace rehearse::sim {

struct PoolSetup {
  std::string name;
  InstanceRules rules;
  std::shared_ptr<const PassPrice> price;
  int instances = 1;
  double request_s = 0;  // until a request is in an instance's queue
};

// Of an instance whose passes go layer by layer: the network ports that they send over.
struct LayeredPasses {
  int layers = 0;  // 0: its passes are one activity each
  std::vector<ServiceLink> ports;
  double gpus_each = 1;           // GPUs that share a port
  std::vector<int> domains = {};  // [port] whose GPUs reach it; empty: one of all
};

// What instances that return read before they work: over links of their own, or from another instance over those of `transfers`.
struct WeightLoads {
  struct Read {
    std::size_t link = 0;
    double bytes = 0;
  };
  std::vector<double> links;                 // bytes a second
  std::vector<std::vector<Read>> instances;  // [instance], or empty: they work at once
  // Others that have its weights, in the order in which they are asked: of those that work the one that fewest read from. Where none
  // works, what stands above.
  std::vector<std::vector<std::size_t>> peers = {};  // [instance], or empty
  std::vector<double> gpu_bytes = {};                // [instance] for each of its GPUs
};

struct ServingSetup {
  std::vector<PoolSetup> pools;  // with prefill and decode apart: one of each; else one for both, or one side alone
  std::string prompt_router = "least-requests", decode_router = "least-kv";  // registered names
  workloads::ArrivalSpec arrivals;
  std::vector<workloads::Request> requests;
  std::uint64_t seed = 1;
  std::shared_ptr<TransferPlan> transfers;  // needed where the sides are apart, and for loads from peers
  std::vector<ServiceFault> faults = {};
  std::vector<LayeredPasses> layered = {};  // [instance], or empty
  WeightLoads loads = {};
  double timeout_s = 30;  // with faults: a hand-over that has not ended so long after it began is given up
  bool records = false;   // what instances and links did over time, its slices from this time on
  double slices_from_s = 0;
  std::vector<RequestId> followed = {};  // requests whose stages are kept one by one
};

struct ServingRun {
  std::vector<RequestState> requests;
  struct Pool {
    std::vector<InstanceUse> instances;
    Gaps gaps;
  };
  std::vector<Pool> pools;
  std::vector<std::int64_t> pages_left;         // still taken at the end, by instance: 0
  double end_s = 0;                             // of the last answer, or pass where requests are not served
  int failures = 0;                             // of instances
  std::vector<double> down_s;                   // [instance] that it did not work, up to the last arrival
  std::shared_ptr<const ServiceRecord> record;  // where it was asked for
  std::vector<TransferLink> links;              // with it: what its links are
  std::map<RequestId, std::vector<StageSpan>> followed;
};

[[nodiscard]] ServingRun simulate_serving(const ServingSetup& setup);

}  // namespace rehearse::sim
