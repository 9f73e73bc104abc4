#include "sim/engine/prices.hpp"

#include <algorithm>

namespace rehearse::sim {

Prices price_graph(const Job& job, const CommunicationModel& model, const workloads::StepGraph& graph) {
  Prices prices;
  for (const workloads::Work& work : graph.works) {
    double once = work.step_overhead ? job.software.step_s : 0;
    for (const workloads::Operator& op : work.operators) once += operator_seconds(job.gpu, job.software, op);
    prices.work_s.push_back(once * work.repeat);
  }
  const SlowParts& slow = job.simulation.faults.slow;
  for (const workloads::Call& call : graph.calls) {
    const std::vector<int>& members = graph.groups[call.group].members;
    CallPrice& price = prices.calls.emplace_back(model.price(call.what, members));
    double slowest = 1;  // all go at the pace of the slowest port
    for (const int rank : members) slowest = std::max(slowest, slow.port(rank));
    price.inter_bytes_per_s /= slowest;
  }
  if (slow.gpus.empty()) return prices;
  for (const workloads::SimulatedRank& rank : graph.ranks) prices.slowdown.push_back(slow.gpu(rank.rank));
  return prices;
}

}  // namespace rehearse::sim
