#include "sim/engine/prices.hpp"

namespace rehearse::sim {

Prices price_graph(const Job& job, const CommunicationModel& model, const workloads::StepGraph& graph) {
  Prices prices;
  for (const workloads::Work& work : graph.works) {
    double once = work.step_overhead ? job.software.step_s : 0;
    for (const workloads::Operator& op : work.operators) once += operator_seconds(job.gpu, job.software, op);
    prices.work_s.push_back(once * work.repeat);
  }
  for (const workloads::Call& call : graph.calls) prices.calls.push_back(model.price(call.what, graph.groups[call.group].members));
  return prices;
}

}  // namespace rehearse::sim
