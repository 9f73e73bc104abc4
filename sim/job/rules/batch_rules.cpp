#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "sim/job/refusal.hpp"
#include "sim/job/rules/rule.hpp"
#include "workloads/names.hpp"
#include "workloads/schedule.hpp"

namespace rehearse::sim {
namespace {

using workloads::Workload;

constexpr int most_documents = 100'000;     // of a micro-batch
constexpr int most_microbatches = 100'000;  // of one replica in one step; real jobs have at most a few hundred

std::int64_t tokens_of(const Workload& w) { return std::int64_t{w.batch.micro} * w.batch.sequence; }

const Rule whole_microbatches{
    "batch.global", [](const Workload& w, const System&) { return w.batch.global % (std::int64_t{w.parallel.dp} * w.batch.micro) == 0; },
    [](const Workload& w, const System&) {
      const std::int64_t share = std::int64_t{w.parallel.dp} * w.batch.micro;
      return Refusal{
          fmt::format("global ({}) is not a multiple of dp*micro = {}*{} = {}", w.batch.global, w.parallel.dp, w.batch.micro, share),
          fmt::format("global: {} would work", multiples_near(w.batch.global, share))};
    }};

const Rule few_tokens{"batch.micro", [](const Workload& w, const System&) { return tokens_of(w) <= std::numeric_limits<int>::max(); },
                      [](const Workload& w, const System&) {
                        return Refusal{fmt::format("micro*sequence = {} tokens, more than one micro-batch can have ({})", tokens_of(w),
                                                   std::numeric_limits<int>::max())};
                      }};

const Rule few_documents{"batch.document_tokens", [](const Workload& w, const System&) { return w.batch.documents() <= most_documents; },
                         [](const Workload& w, const System&) {
                           return Refusal{fmt::format("{} documents in a micro-batch, more than {}", w.batch.documents(), most_documents)};
                         }};

const Rule few_microbatches{
    "batch.global", [](const Workload& w, const System&) { return w.microbatches() <= most_microbatches; },
    [](const Workload& w, const System&) {
      return Refusal{fmt::format("{} micro-batches per replica, more than {}", w.microbatches(), most_microbatches)};
    }};

// A schedule with one chunk is refused itself, with several the number of chunks where the schedule is the default.
bool is_scheduled(const Workload& w) { return workloads::ScheduleRegistry::get(w.schedule).refusal(workloads::pipeline_shape(w)).empty(); }

Refusal not_scheduled(const Workload& w, const System&) {
  return {workloads::ScheduleRegistry::get(w.schedule).refusal(workloads::pipeline_shape(w))};
}

const Rule one_chunk_scheduled{
    "schedule", [](const Workload& w, const System&) { return workloads::pipeline_shape(w).chunks > 1 || is_scheduled(w); }, not_scheduled};
const Rule chunks_scheduled{"schedule", [](const Workload& w, const System&) { return is_scheduled(w); }, not_scheduled, "parallel.vpp"};

int most_layers_of_a_stage(const Workload& w) {
  int most = 0;
  for (const auto& stage : workloads::split_layers(w)) {
    most = std::max(most, std::accumulate(stage.begin(), stage.end(), 0, [](int sum, const auto& chunk) { return sum + chunk.layers; }));
  }
  return most;
}

const Rule layers_to_recompute{
    "recompute.full_layers",
    [](const Workload& w, const System&) { return w.recompute.full_layers < 0 || w.recompute.full_layers <= most_layers_of_a_stage(w); },
    [](const Workload& w, const System&) {
      return Refusal{fmt::format("full_layers ({}) is more than any stage has ({})", w.recompute.full_layers, most_layers_of_a_stage(w))};
    }};

// The first of those named that the model lacks; null: it has all.
template <class Named>
const Named* lacking(const Workload& w, const std::vector<Named>& named, bool (*has)(const workloads::Model&, Named)) {
  const auto found = std::ranges::find_if(named, [&](Named one) { return !has(w.model, one); });
  return found == named.end() ? nullptr : &*found;
}
const workloads::RecomputeModule* lacking_module(const Workload& w) { return lacking(w, w.recompute.modules, workloads::has_module); }
const workloads::LayerOutput* lacking_output(const Workload& w) { return lacking(w, w.recompute.kept, workloads::has_output); }

const Rule modules_to_recompute{
    "recompute.modules", [](const Workload& w, const System&) { return lacking_module(w) == nullptr; },
    [](const Workload& w, const System&) {
      return Refusal{fmt::format("the model has no {} to recompute", workloads::recompute_modules.of(*lacking_module(w)))};
    }};

const Rule outputs_to_keep{"recompute.kept", [](const Workload& w, const System&) { return lacking_output(w) == nullptr; },
                           [](const Workload& w, const System&) {
                             return Refusal{fmt::format("the model has no {} to keep", workloads::layer_outputs.of(*lacking_output(w)))};
                           }};

const Rule expert_outputs_to_keep{
    "recompute.kept",
    [](const Workload& w, const System&) { return !w.experts.chunk_recompute || !w.recompute.keeps(workloads::LayerOutput::expert_fc2); },
    [](const Workload&, const System&) {
      return Refusal{"expert_fc2 does not go with moe.chunk_recompute: chunks compute their experts again, whatever is kept",
                     "moe: {chunk_recompute: false}"};
    }};

// Under sequence parallelism, or with one rank, a rank has its part alone.
const Rule inputs_to_shard{
    "recompute.shards_inputs",
    [](const Workload& w, const System&) { return !w.recompute.shards_inputs || (w.parallel.tp > 1 && !w.parallel.sp); },
    [](const Workload& w, const System&) {
      return Refusal{w.parallel.sp ? "with parallel.sp each rank keeps its part of the inputs already"
                                   : "one rank (parallel.tp: 1) has no parts to keep",
                     "recompute: full"};
    }};

}  // namespace

std::vector<Rule> batch_rules() {
  return {whole_microbatches,  few_tokens,           few_documents,   few_microbatches,       one_chunk_scheduled, chunks_scheduled,
          layers_to_recompute, modules_to_recompute, outputs_to_keep, expert_outputs_to_keep, inputs_to_shard};
}

}  // namespace rehearse::sim
