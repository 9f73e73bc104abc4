#include "sim/serving/tune_formula.hpp"

#include <algorithm>
#include <cmath>
#include <span>

#include "sim/serving/formula.hpp"
#include "sim/serving/formula_by_passes.hpp"
#include "sim/serving/placement.hpp"

namespace rehearse::sim {

const SideState& TuneFormula::state_of(const PoolCandidate& plan, int number) const {
  const auto [at, fresh] = known_.try_emplace({&plan, number});
  if (!fresh) return at->second;
  const Pool pool = with_number(plan, number);
  PoolDeployment deployment = plan.deployment;
  deployment.pool = &pool;
  if (&load_ != &sides_.load) deployment.walks = nullptr;  // of all requests
  const ServingJob& job = sides_.job;
  const SideFormula side(std::span(&deployment, 1), load_, pool.role == Role::decode ? job.decode_router : job.prompt_router);
  const double rate_per_s = load_.rate_per_s;
  switch (pool.role) {
    case Role::prefill:
      at->second = side.prompts(rate_per_s);
      break;
    case Role::decode:
      at->second = side.decoding(rate_per_s);
      break;
    case Role::both:
      at->second = side.together(rate_per_s);
      break;
  }
  return at->second;
}

PromisedTimes TuneFormula::together(const PoolCandidate& plan, int number) const {
  return promised_together(state_of(plan, number), plan.pool->habits.request_s);
}

namespace {

// Pass by pass the percentile is one of requests: of unlike prompts it may be a short one, which takes a pass all the same, and who
// decodes may have met hardly anybody.
PromisedTimes by_passes_at_least(const PoolFormula& pool, const LoadMoments& load) {
  const double prompts = load.input_variation > 0 ? 1 / pool.tokens_of_a_prompt() : 1;
  double passes_a_token = load.steps.empty() ? 0 : 1;
  for (std::size_t i = 0; i < load.steps.size(); ++i) passes_a_token = std::min(passes_a_token, pool.step_passes()[i] / load.steps[i]);
  return {prompts < 1 ? pool.together_s(prompts, 0) : pool.prompt_s(0).seconds, passes_a_token * pool.decode_s(1.0)};
}

}  // namespace

// A first token takes a prompt alone, and a further one a pass with those who decode where every pass is as short as one sequence's.
PromisedTimes TuneFormula::together_at_least(const PoolCandidate& plan, int number) const {
  constexpr double rounding = 1 - 1e-9;
  const LoadMoments& load = load_;
  const PoolFormula pool(plan.deployment, load);
  const double rate_per_s = load.rate_per_s / number;
  const bool by_passes = queues_by_passes(pool, load);
  if (by_passes && !carries_prompts(pool, rate_per_s)) return {never_s, never_s};
  PromisedTimes least =
      by_passes ? by_passes_at_least(pool, load) : PromisedTimes{std::min(1.0, high_prompt(load)) * pool.prompt_s(0).seconds, 0};
  least.ttft_s = (least.ttft_s + plan.pool->habits.request_s) * rounding;
  least.tpot_s *= rounding;
  if (load.steps.empty() || plan.deployment.rules.batching == Batching::fixed) return least;
  double passes = 0;
  for (const double each : pool.step_passes()) passes += each / static_cast<double>(load.steps.size());
  const double batch = rate_per_s * load.step_share * passes * pool.decode_s(1.0);
  if (batch > pool.most_sequences()) return {never_s, never_s};
  if (!by_passes)
    least.tpot_s = pool.step_passes()[load.short_place()] / load.short_steps() * pool.decode_s(1 + high_number(batch, load)) * rounding;
  return least;
}

double TuneFormula::prompts_take_s(const PoolCandidate& plan, int number) const {
  const SideState& state = state_of(plan, number);
  return std::isfinite(state.ttft_s) ? state.ttft_high_s + plan.pool->habits.request_s : never_s;
}

PromisedTimes TuneFormula::decodes_take(const PoolCandidate& plan, int number) const {
  const SideState& state = state_of(plan, number);
  if (!std::isfinite(state.ttft_s)) return {never_s, never_s};
  return {sides_.job.transfer.prefill_answers_first ? 0 : state.queue_s + state.pass_s, state.tpot_high_s};
}

void TuneFormula::put_scratch(const PoolCandidate& prompts, int prompters, const PoolCandidate& decodes, int decoders) const {
  scratch_.pools = {with_number(prompts, prompters), with_number(decodes, decoders)};
}

bool TuneFormula::holds(const PoolCandidate& prompts, int prompters, const PoolCandidate& decodes, int decoders) const {
  put_scratch(prompts, prompters, decodes, decoders);
  return holds(scratch_);
}

bool TuneFormula::holds(const ServingJob& job) const {
  for (std::size_t part = 0; part < job.parts.size(); ++part) {
    const bool stands = std::ranges::find(job.pools, part, &Pool::part) != job.pools.end();
    if (stands && gpus_taken(job, part) > sides_.spec.inventory[part]) return false;
  }
  return !hand_over_refused(job);
}

// Of a cache that leaves as a whole what its engines and kernels take, and the network between two parts.
double TuneFormula::between_at_least_s(const PoolCandidate& prompts, const PoolCandidate& decodes) const {
  constexpr double rounding = 1 - 1e-9;
  put_scratch(prompts, 1, decodes, 1);
  const TransferLane lane = transfer_lane(scratch_, 0, 1);
  if (!lane.refused.empty()) return never_s;
  for (const std::size_t end : {lane.from_part, lane.to_part}) {
    if (!lane.one_part() && scratch_.parts[end].cluster.network.kind == topology::Network::none) return never_s;
  }
  const CacheFront whole{static_cast<std::int64_t>(std::ceil(load_.input))};
  const double tokens = lane.in_pages(static_cast<double>(whole.tokens));
  double crossing_s = 0;
  const topology::LinkSpec& between = scratch_.between.of(lane.from_part, lane.to_part);
  if (!lane.one_part() && between.bandwidth_bytes_per_s > 0) {
    double bytes = 0;
    for (const workloads::KvPair& pair : lane.pairs) bytes += lane.piece_bytes(pair, {}, whole);
    crossing_s = bytes / (lane.line_share * between.effective_bytes_per_s()) * rounding;
    if (load_.rate_per_s * crossing_s >= 1) return never_s;
  }
  if (scratch_.transfer.prefill_answers_first || scratch_.transfer.mode != TransferMode::after_prefill) return 0;
  return (decodes.pool->habits.request_s + lane.start_s(tokens, 0) + crossing_s + lane.receiver_s_per_token * tokens) * rounding;
}

MeanHandOver TuneFormula::between(const PoolCandidate& prompts, int prompters, const PoolCandidate& decodes, int decoders) const {
  put_scratch(prompts, prompters, decodes, decoders);
  NetworkTransfers::Fabrics fabrics;
  for (std::size_t part = 0; part < scratch_.parts.size(); ++part) {
    const int gpus = gpus_taken(scratch_, part);
    auto& fabric = fabrics_[{part, gpus}];
    if (!fabric) fabric = fabric_for(scratch_.parts[part].cluster, gpus);
    fabrics.push_back(fabric);
  }
  const NetworkTransfers transfers(scratch_, std::move(fabrics));
  const LoadMoments& load = load_;
  const PoolFormula formula(prompts.deployment, load);
  const HandOverFormula hand_overs(std::span(&formula, 1), transfers, load.input, decodes.pool->habits.request_s, 1);
  return hand_overs.at(load.rate_per_s, {1}, {1});
}

PromisedTimes TuneFormula::apart(const PoolCandidate& prompts, int prompters, const PoolCandidate& decodes, int decoders) const {
  const MeanHandOver way = between(prompts, prompters, decodes, decoders);
  SideState side = state_of(prompts, prompters);
  const Pool pool = with_number(prompts, prompters);
  PoolDeployment deployment = prompts.deployment;
  deployment.pool = &pool;
  const PoolFormula formula(deployment, load_);
  put_held(side, {&formula, 1}, load_.rate_per_s, way);
  return promised_apart(sides_.job.transfer, load_, side, state_of(decodes, decoders), way, prompts.pool->habits.request_s);
}

bool TuneFormula::holds(const TunedDeployment& deployment) const {
  return holds(with_pools(sides_.job, deployment, sides_.load.rate_per_s));
}

PromisedTimes TuneFormula::of(const TunedDeployment& deployment) const {
  const ServingJob job = with_pools(sides_.job, deployment, sides_.load.rate_per_s);
  if (!holds(job)) return {never_s, never_s};
  return predicted_promise(job, deploy(job));
}

}  // namespace rehearse::sim
