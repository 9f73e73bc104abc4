#include "sim/analytic/expert_prices.hpp"

#include "sim/cost/queue.hpp"

namespace rehearse::sim {

using workloads::Pass;

ExpertPrices::ExpertPrices(const System& system, const workloads::Workload& workload, PriceBook& prices, int step)
    : system_(system),
      workload_(workload),
      prices_(prices),
      layer_(workload, step),
      step_(step),
      microbatches_(layer_.loads().even() ? 1 : workload.microbatches()) {}

const std::vector<ChunkTimes>& ExpertPrices::chunks(const workloads::RoutedExperts& what, int layer, int stage) {
  std::vector<ChunkTimes>& known = chunks_[{what.pass, what.weight_gradients, layer, prices_.place(stage)}];
  if (!known.empty()) return known;
  for (int i = 0; i < microbatches_; ++i) known.push_back(chunk(what, layer, i, stage));
  return known;
}

// No part of a chunk takes a rank less when it gets more.
ChunkTimes ExpertPrices::chunk(const workloads::RoutedExperts& what, int layer, int microbatch, int stage) {
  const int hottest = layer_.loads().at(layer, microbatch).hottest;
  const workloads::ExpertCalls& calls = layer_.calls(what.pass, hottest, layer, microbatch);
  const bool wide = workloads::is_wide(workload_, layer);
  const WorkTimes& times = work(layer_.work(what, hottest, layer, microbatch).pairs, wide);
  ChunkTimes chunk{workload_.experts.chunks_of(layer)};
  chunk.dispatch_s = seconds(calls.dispatch, stage);
  chunk.combine_s = seconds(calls.combine, stage);
  chunk.recompute_s = layer_.again(what) ? times.again_s : 0;
  const bool delays = workloads::delays_weights(workload_, what);
  chunk.work_s = delays ? times.inputs_s : times.of(what);
  chunk.delayed_s = delays ? times.weights_s : 0;
  return chunk;
}

double ExpertPrices::seconds(const std::vector<workloads::Communication>& calls, int stage) {
  double sum = 0;
  for (const workloads::Communication& what : calls) {
    if (!what.exchange) {
      sum += prices_.seconds(what, stage);
      continue;
    }
    const auto [it, added] = exchanges_s_[prices_.place(stage)].try_emplace(what.exchange.get(), 0.0);
    if (added) it->second = prices_.seconds(what, stage);
    sum += it->second;
  }
  return sum;
}

double ExpertPrices::most_pairs(int layer) const {
  double sum = 0;
  for (int i = 0; i < microbatches_; ++i) {
    const workloads::LayerLoad& load = layer_.loads().at(layer, i);
    sum += load.received[static_cast<std::size_t>(load.hottest)];
  }
  return sum / microbatches_;
}

double ExpertPrices::WorkTimes::of(const workloads::RoutedExperts& what) const {
  if (what.pass == Pass::backward_weight) return weights_s;
  if (what.pass == Pass::recompute) return recompute_s;
  if (what.pass != Pass::backward_input) return forward_s;
  return what.weight_gradients ? inputs_s + weights_s : inputs_s;
}

const ExpertPrices::WorkTimes& ExpertPrices::work(double pairs, bool wide) {
  const auto [it, added] = work_[wide ? 1 : 0].try_emplace(pairs);
  WorkTimes& times = it->second;
  if (!added) return times;
  if (wide && !wide_) wide_ = workloads::of_wide_layers(workload_);
  const workloads::Workload& own = wide ? *wide_ : workload_;
  const auto seconds_of = [&](const workloads::Operator& op) { return operator_seconds(system_.gpu, system_.software, op); };
  const workloads::BlockProgram experts = workloads::expert_operators(own, pairs);
  for (const workloads::Item& item : experts.forward) times.forward_s += seconds_of(std::get<workloads::Operator>(item));
  for (const workloads::Item& item : experts.backward) {
    const auto& op = std::get<workloads::Operator>(item);
    (op.pass == Pass::backward_weight ? times.weights_s : times.inputs_s) += seconds_of(op);
  }
  const auto seconds_of_work = [&](const workloads::ExpertWork& work) {
    double sum = 0;
    for (const workloads::Operator& op : workloads::operators_of(own, work, experts)) sum += seconds_of(op);
    return sum;
  };
  const bool less = workload_.recompute.keeps(workloads::LayerOutput::expert_fc2) || workloads::replays_dispatch(workload_);
  times.recompute_s = less ? seconds_of_work({{Pass::recompute}, false, pairs}) : times.forward_s;
  const workloads::RoutedExperts backward{Pass::backward_input};
  if (layer_.again(backward)) times.again_s = seconds_of_work({backward, true, pairs});
  return times;
}

}  // namespace rehearse::sim
