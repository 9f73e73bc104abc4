#include "sim/serving/time_splits.hpp"

#include <algorithm>

#include "sim/serving/load_moments.hpp"
#include "sim/serving/pool_formula.hpp"

namespace rehearse::sim {
namespace {

double mean_stage_s(const ServingResult& result, Stage stage) {
  const auto found = result.stages.find(std::string(name_of(stage)));
  return found == result.stages.end() ? 0 : found->second;
}

// The first token comes at the end of a prompt, or of the first pass that decodes: what no stage before has of its time.
void put_splits(ServingResult& result, const PassMix& prompts, const PassMix& decodes) {
  const double ttft_s = result.ttft.mean_s;
  if (ttft_s >= 0) {
    double before_s = 0;
    for (const Stage stage : {Stage::queued, Stage::prefilling, Stage::waiting, Stage::aligning, Stage::transferring, Stage::decode_queued})
      before_s += mean_stage_s(result, stage);
    const double computed_s = prompts.sum() > 0 ? std::min(mean_stage_s(result, Stage::prefilling), ttft_s) : 0;
    const double first_s = decodes.sum() > 0 ? std::clamp(ttft_s - before_s, 0.0, ttft_s - computed_s) : 0;
    result.ttft_split = prompts.scaled_to(computed_s);
    result.ttft_split.add(decodes.scaled_to(first_s), 1);
    result.ttft_split.waiting += ttft_s - computed_s - first_s;
  }
  if (result.tpot.mean_s >= 0) result.tpot_split = decodes.scaled_to(result.tpot.mean_s);
}

// One prompt, or as much of it as a pass takes; beside so many sequences. Of attention replicas those compute one each that came meanwhile.
PassShape prompt_pass(const PoolDeployment& pool, const LoadMoments& load, double beside, double meanwhile) {
  const double whole = std::max(1.0, load.input - load.found);
  const double lane = static_cast<double>(pool.rules.tokens) / static_cast<double>(pool.rules.lanes);
  const double tokens = pool.rules.chunked_prefill ? std::min(whole, std::max(1.0, lane - beside)) : whole;
  const double prompts = std::clamp(meanwhile, 1.0, static_cast<double>(pool.rules.lanes));
  PassShape shape = prompt_shape(load, prompts, tokens, load.found + (whole - tokens) / 2, beside);
  shape.finished = prompts * tokens / whole;
  if (prompts > 1) shape.busiest_tokens = tokens;
  return shape;
}

}  // namespace

void put_simulated_splits(ServingResult& result, const ServingRun& run) {
  PassMix prompts, decodes;
  double tokens = 0;
  for (const ServingRun::Pool& pool : run.pools) {
    for (const InstanceUse& use : pool.instances) {
      prompts.add(use.prompt_mix, 1);
      decodes.add(use.decode_mix, 1);
      tokens += use.decoded_tokens;
    }
  }
  // Gaps are longer than the passes that end them: of who was put back, or stood beside passes of prompts alone.
  if (tokens > 0 && result.itl.mean_s > 0) decodes.waiting += std::max(0.0, result.itl.mean_s * tokens - decodes.sum());
  put_splits(result, prompts, decodes);
}

void put_predicted_splits(ServingResult& result, const ServingJob& job, const Deployment& deployment) {
  const LoadMoments load = moments_of(job.load, job.seed);
  PassMix prompts, decodes;
  double computing = 0;  // instances that compute prompts
  for (const PoolDeployment& pool : deployment.pools) computing += pool.rules.role == Role::decode ? 0 : pool.pool->instances;
  const double meanwhile = result.requests_per_s / std::max(1.0, computing) * mean_stage_s(result, Stage::prefilling);
  for (std::size_t i = 0; i < deployment.pools.size(); ++i) {
    const PoolDeployment& pool = deployment.pools[i];
    const double instances = pool.pool->instances, batch = std::max(1.0, result.pools[i].batch);
    const bool mixes = pool.rules.role == Role::both && pool.rules.batching == Batching::continuous;
    PassMix prompt;
    if (pool.rules.role != Role::decode) {
      prompt = mix_of(pool.price->parts(prompt_pass(pool, load, mixes ? result.pools[i].batch : 0, meanwhile)));
      prompts.add(prompt.scaled_to(1), instances);
    }
    if (pool.rules.role == Role::prefill) continue;
    PassShape shape;
    shape.decodes = batch;
    shape.context = batch * load.context;
    PassMix decode = mix_of(pool.price->parts(shape));
    // What the time per token is longer than such a pass: prompts in it, or before it.
    const double more_s = std::max(0.0, result.tpot.mean_s - decode.sum());
    if (mixes) {
      decode.add(prompt.scaled_to(more_s), 1);
    } else {
      decode.waiting += more_s;
    }
    decodes.add(decode.scaled_to(1), instances * batch);
  }
  put_splits(result, prompts, decodes);
}

}  // namespace rehearse::sim
