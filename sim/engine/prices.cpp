#include "sim/engine/prices.hpp"

namespace rehearse::sim {
namespace {

double work_seconds(const Job& job, const CommunicationModel& model, const workloads::StepGraph& graph, const workloads::Work& work) {
  double once = work.step_overhead ? job.software.step_s : 0;
  if (work.queue == nullptr) {
    for (const workloads::Operator& op : work.operators) once += operator_seconds(job.gpu, job.software, op);
    return once * work.repeat;
  }
  double calls_s = 0;
  for (const workloads::Communication& call : work.queue->calls)
    calls_s += model.price(call, graph.groups[work.queue_group].members).seconds();
  const int calls = static_cast<int>(work.queue->calls.size());
  return work.repeat * queued_seconds(job.gpu, job.software, work.operators, work.queue->operators, calls_s, calls);
}

}  // namespace

Prices price_graph(const Job& job, const CommunicationModel& model, const workloads::StepGraph& graph) {
  Prices prices;
  for (const workloads::Work& work : graph.works) prices.work_s.push_back(work_seconds(job, model, graph, work));
  for (const workloads::Call& call : graph.calls) prices.calls.push_back(model.price(call.what, graph.groups[call.group].members));
  return prices;
}

}  // namespace rehearse::sim
