#include "sim/serving/stage_differences.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include "sim/serving/formula_by_passes.hpp"
#include "sim/serving/load_moments.hpp"
#include "sim/serving/router.hpp"

namespace rehearse::sim {
namespace {

using workloads::Arrivals;

constexpr double full = 0.98;        // of a cache: pages were short
constexpr double some_answers = 20;  // a run of fewer mean answers' time is mostly its beginning and end
constexpr double noticed_batch = 0.02;

// Both answers, and how much longer the stage in question is in the simulation.
struct Facts {
  const ServingJob& job;
  const Deployment& deployment;
  const ServingResult& analytic;
  const ServingResult& simulated;
  double more_s = 0;

  [[nodiscard]] static double stage_s(const ServingResult& result, Stage stage) {
    const auto found = result.stages.find(std::string(name_of(stage)));
    return found == result.stages.end() ? 0 : found->second;
  }
  [[nodiscard]] double longer_s(Stage stage) const { return stage_s(simulated, stage) - stage_s(analytic, stage); }
  template <class Value>
  [[nodiscard]] double of_pools(const ServingResult& result, bool decoding, Value value) const {
    double most = 0;
    for (std::size_t i = 0; i < job.pools.size(); ++i) {
      const bool decodes = job.pools[i].role != Role::prefill, prefills = job.pools[i].role != Role::decode;
      if (decoding ? decodes : prefills) most = std::max(most, value(result.pools[i]));
    }
    return most;
  }
  [[nodiscard]] double batch(const ServingResult& result) const {
    return of_pools(result, true, [](const PoolResult& pool) { return pool.batch; });
  }
  [[nodiscard]] double preempted() const {
    return of_pools(simulated, true, [](const PoolResult& pool) { return pool.preemptions; });
  }
  [[nodiscard]] double fullest(bool decoding) const {
    return of_pools(simulated, decoding, [](const PoolResult& pool) { return pool.most_pages_share; });
  }
  [[nodiscard]] double prompt_pass_s() const {
    return of_pools(simulated, false, [](const PoolResult& pool) { return pool.pass_s; });
  }
  // By formula a batch is a mean over time; of passes it is one over those with anybody, of whose number at random this is the mean.
  [[nodiscard]] double batch_of_passes() const {
    const double at_any_time = batch(analytic);
    return comes_by_itself() && at_any_time > 0 ? at_any_time / -std::expm1(-at_any_time) : at_any_time;
  }
  [[nodiscard]] bool comes_by_itself() const { return moments_of(job.load, job.seed).rate_per_s > 0; }
  [[nodiscard]] bool holds_other_batches() const {
    return std::abs(batch(simulated) - batch_of_passes()) > noticed_batch * batch_of_passes();
  }
  [[nodiscard]] bool apart() const { return job.pools.back().role == Role::decode; }
  // Of the fullest instance with prompts, whole requests of mean length.
  [[nodiscard]] double requests_held() const {
    const double tokens = simulated.input_tokens_per_s + (apart() ? 0 : simulated.output_tokens_per_s);
    return of_pools(simulated, false,
                    [&](const PoolResult& pool) { return std::floor(pool.cache_tokens * simulated.requests_per_s / tokens); });
  }
  [[nodiscard]] bool had_no_room() const { return (1 - fullest(false)) * (requests_held() + 1) < 1; }
  [[nodiscard]] bool walked_by_passes() const {
    const LoadMoments load = moments_of(job.load, job.seed);
    return queues_by_passes(PoolFormula(deployment.pools.front(), load), load);
  }
  [[nodiscard]] bool differ() const { return moments_of(job.load, job.seed).steps.size() > 1; }  // answers
  [[nodiscard]] double answers_of_time() const { return simulated.makespan_s / simulated.e2e.mean_s; }
};

// A cause that the formula leaves out, known by what the simulation counted.
struct Cause {
  Stage stage;
  bool (*holds)(const Facts& facts);
  std::string (*words)(const Facts& facts);
};

std::string preempted_words(const Facts& f) { return fmt::format("pages ran out {:.0f} times: who had to go queues again", f.preempted()); }
std::string short_words(const Facts& f) {
  return fmt::format("the load lasts as long as {:.1f} answers: it begins and ends with idle instances", f.answers_of_time());
}
GoesBy prompts_go_by(const Facts& f) { return RouterRegistry::get(f.job.prompt_router).goes_by(); }
// Pools of the role among which something else than lengths chooses.
bool are_chosen_among(const Facts& f, Role role) { return f.job.several(role) && prompts_go_by(f) != GoesBy::lengths; }
bool sees_no_queue(const Facts& f) {
  return prompts_go_by(f) == GoesBy::caches && (f.job.pools.front().instances > 1 || f.job.several(f.job.pools.front().role));
}
bool is_of_both(const Facts& f) {
  const Pool& first = f.job.pools.front();
  return first.role == Role::both && (first.instances > 1 || f.job.several(Role::both));
}
// Routers by caches between like instances of both.
bool bunches(const Facts& f) { return sees_no_queue(f) && is_of_both(f); }
std::string bunched_words(const Facts& f) {
  return f.job.prompt_router +
         ": who came together ends together and leaves the emptiest cache, to which go all that come next: prompts come in bunches";
}
bool is_short(const Facts& f) { return f.answers_of_time() < some_answers; }

const std::vector<Cause>& causes() {
  static const std::vector<Cause> all{
      {Stage::queued, [](const Facts& f) { return f.more_s > 0 && f.simulated.retried > 0; },
       [](const Facts& f) { return fmt::format("{} requests began again after failures", f.simulated.retried); }},
      {Stage::queued, [](const Facts& f) { return f.more_s > 0 && f.preempted() > 0; }, preempted_words},
      {Stage::queued, [](const Facts& f) { return f.more_s > 0 && f.longer_s(Stage::waiting) > 0 && f.fullest(false) > full; },
       [](const Facts&) { return std::string("back-pressure: caches that wait for room keep the pages that prompts need"); }},
      {Stage::queued, [](const Facts& f) { return f.more_s > 0 && f.fullest(false) > full; },
       [](const Facts&) { return std::string("prompts wait for pages of the cache"); }},
      {Stage::queued, [](const Facts& f) { return f.more_s > 0 && f.job.load.arrivals.kind == Arrivals::trace; },
       [](const Facts&) { return std::string("arrivals of the trace are burstier than independent ones at its mean rate"); }},
      {Stage::queued, [](const Facts& f) { return f.more_s < 0 && f.longer_s(Stage::prefilling) > 0; },
       [](const Facts&) {
         return std::string("prompts that come together share passes: they queue for less and are computed for longer");
       }},
      {Stage::queued, [](const Facts& f) { return f.more_s < 0 && f.job.load.arrivals.kind == Arrivals::closed; },
       [](const Facts&) { return std::string("clients of a closed loop come apart: who waits is not behind independent arrivals"); }},
      {Stage::queued, [](const Facts& f) { return f.more_s > 0 && f.job.load.arrivals.kind == Arrivals::closed; },
       [](const Facts&) {
         return std::string("clients of a closed loop that began together come back together, and queue behind one another");
       }},
      {Stage::queued,
       [](const Facts& f) { return f.more_s > 0 && are_chosen_among(f, f.job.pools.front().role) && prompts_go_by(f) != GoesBy::seconds; },
       [](const Facts& f) {
         return fmt::format("{} knows no speeds: who queues where prompts are slow would find others free", f.job.prompt_router);
       }},
      {Stage::queued, [](const Facts& f) { return f.more_s > 0 && sees_no_queue(f); },
       [](const Facts& f) {
         return fmt::format("{} does not see who queues: all that come during a pass go to the instance whose cache is emptiest",
                            f.job.prompt_router);
       }},
      {Stage::queued, is_short, short_words},
      {Stage::queued, [](const Facts& f) { return f.more_s > 0 && f.had_no_room(); },
       [](const Facts& f) {
         return fmt::format("an instance holds {:.0f} of the requests: who finds no room waits until one ends", f.requests_held());
       }},
      {Stage::queued, [](const Facts& f) { return f.more_s < 0 && bunches(f); }, bunched_words},
      {Stage::queued, [](const Facts& f) { return f.walked_by_passes(); },
       [](const Facts& f) {
         return fmt::format("passes take as long by formula as beside the mean number of sequences; prompts meet {} ones",
                            f.more_s > 0 ? "longer" : "shorter");
       }},
      {Stage::queued, [](const Facts& f) { return f.job.pools.front().habits.batching == Batching::fixed; },
       [](const Facts&) { return std::string("static batches differ in length, and routers look for instances without one"); }},
      {Stage::queued, [](const Facts&) { return true; },
       [](const Facts&) { return std::string("a queue has more than the two moments that the formula knows"); }},

      {Stage::prefilling, bunches, bunched_words},
      {Stage::prefilling, [](const Facts& f) { return f.more_s > 0; },
       [](const Facts& f) {
         return fmt::format("passes hold chunks of several prompts, and take {:.1f} ms on average", 1e3 * f.prompt_pass_s());
       }},
      {Stage::prefilling, [](const Facts& f) { return f.job.pools.front().role == Role::prefill && are_chosen_among(f, Role::prefill); },
       [](const Facts&) { return std::string("the router sends more prompts where they are computed sooner than the formula has it"); }},
      {Stage::prefilling, [](const Facts& f) { return f.job.pools.front().role == Role::prefill && f.walked_by_passes(); },
       [](const Facts&) { return std::string("fewer prompts share passes than would at random"); }},
      {Stage::prefilling, [](const Facts& f) { return f.job.pools.front().role == Role::prefill; },
       [](const Facts&) { return std::string("prompts that count are shorter than the mean"); }},
      {Stage::prefilling, [](const Facts&) { return true; },
       [](const Facts& f) {
         return fmt::format("passes are shorter than those beside the formula's mean batch: {:.1f} sequences decode", f.batch(f.simulated));
       }},

      {Stage::waiting, [](const Facts& f) { return f.more_s > 0 && f.fullest(true) > full; },
       [](const Facts&) { return std::string("no room: the decoding side's pages are all taken"); }},
      {Stage::waiting, [](const Facts& f) { return f.more_s > 0; },
       [](const Facts&) { return std::string("no room: so many sequences as the decoding side takes at once are there"); }},
      {Stage::waiting, [](const Facts&) { return true; },
       [](const Facts&) { return std::string("the other engine learns of it while passes go on that several prompts share"); }},

      {Stage::aligning, [](const Facts&) { return true; },
       [](const Facts& f) {
         return f.job.transfer.mode == TransferMode::after_prefill
                    ? std::string("the formula has one prompt of the mean length")
                    : std::string("the last pieces are of other lengths than a lone prompt's");
       }},
      {Stage::transferring, [](const Facts& f) { return f.more_s > 0; },
       [](const Facts&) { return std::string("caches on their way at once share links"); }},
      {Stage::transferring, [](const Facts&) { return true; },
       [](const Facts& f) {
         return f.job.transfer.mode == TransferMode::after_prefill
                    ? std::string("prompts shorter than the mean, or ways within a node, cost less than the mean of all ways")
                    : std::string("passes that several prompts share hide more of it");
       }},

      {Stage::decode_queued, [](const Facts& f) { return f.more_s > 0 && f.preempted() > 0; },
       [](const Facts&) { return std::string("passes that compute tokens again are long, and caches wait for their end"); }},
      {Stage::decode_queued, [](const Facts& f) { return f.job.pools.back().habits.batching == Batching::fixed && f.differ(); },
       [](const Facts&) { return std::string("static batches differ in length"); }},
      {Stage::decode_queued, [](const Facts& f) { return f.job.pools.back().habits.batching == Batching::fixed; },
       [](const Facts&) { return std::string("routers look for instances without a batch"); }},
      {Stage::decode_queued, [](const Facts&) { return true; },
       [](const Facts&) { return std::string("caches do not come at random within a pass"); }},

      {Stage::decoding, [](const Facts& f) { return f.more_s > 0 && f.preempted() > 0; }, preempted_words},
      {Stage::decoding, bunches, bunched_words},
      {Stage::decoding, [](const Facts& f) { return prompts_go_by(f) == GoesBy::requests && is_of_both(f) && !f.job.several(Role::both); },
       [](const Facts& f) {
         return f.job.prompt_router +
                ": who came together ends together and leaves the instance with the fewest requests: prompts come in bunches";
       }},
      {Stage::decoding, [](const Facts& f) { return are_chosen_among(f, Role::both); },
       [](const Facts& f) {
         return fmt::format("{} divides the requests between unlike instances otherwise than the formula has it", f.job.prompt_router);
       }},
      {Stage::decoding, [](const Facts& f) { return f.apart() && f.holds_other_batches(); },
       [](const Facts& f) {
         return fmt::format("caches come as passes of prompts end: passes hold {:.2f} sequences, at random {:.2f}", f.batch(f.simulated),
                            f.batch_of_passes());
       }},
      {Stage::decoding, [](const Facts& f) { return f.holds_other_batches(); },
       [](const Facts& f) {
         return fmt::format("passes hold {:.2f} sequences, {:.2f} by formula", f.batch(f.simulated), f.batch_of_passes());
       }},
      {Stage::decoding, [](const Facts& f) { return !f.apart() && f.job.pools.front().habits.batching == Batching::prefill_first; },
       [](const Facts& f) {
         return fmt::format("prompts go first: their passes stand between tokens {} than the formula has it",
                            f.more_s > 0 ? "longer" : "for less");
       }},
      {Stage::decoding, is_short, short_words},
      {Stage::decoding, [](const Facts&) { return true; },
       [](const Facts& f) {
         return fmt::format("passes of few and of many sequences cost {} on average than one of the mean number",
                            f.more_s > 0 ? "more" : "less");
       }},
  };
  return all;
}

// The first that holds.
std::string reason_of(Stage stage, const Facts& facts) {
  for (const Cause& cause : causes()) {
    if (cause.stage == stage && cause.holds(facts)) return cause.words(facts);
  }
  return {};
}

constexpr std::array split_waits{Stage::queued, Stage::waiting, Stage::aligning, Stage::transferring, Stage::decode_queued};
constexpr std::array split_computes{Stage::prefilling};
constexpr std::array split_decodes{Stage::decoding};

// That of the stage among these which differs the most.
std::string reason_among(const std::vector<StageDifference>& all, std::span<const Stage> stages) {
  double most_s = 0;
  std::string reason;
  for (const StageDifference& one : all) {
    const double more_s = std::abs(one.simulated_s - one.analytic_s);
    if (more_s <= most_s || std::ranges::none_of(stages, [&](Stage stage) { return one.name == name_of(stage); })) continue;
    most_s = more_s;
    reason = one.reason;
  }
  return reason;
}

// What the time above goes to; of small differences nothing is said.
template <class Reason>
void add_split(std::vector<StageDifference>& out, const std::string& before, const PassMix& analytic, const PassMix& simulated,
               Reason reason) {
  constexpr double noticed = 0.01;
  for (const PassMix::Named& one : PassMix::parts()) {
    const double formula_s = analytic.*one.part, run_s = simulated.*one.part;
    if (formula_s <= 0 && run_s <= 0) continue;
    const bool differ = std::abs(run_s - formula_s) > noticed * simulated.sum();
    std::string why = differ ? reason(one.part) : "";
    if (differ && why.empty())
      why = "passes hold other numbers of prompts and sequences than the formula's, which are one prompt's and the mean";
    out.push_back({before + std::string(one.name), formula_s, run_s, why});
  }
}

}  // namespace

std::vector<StageDifference> stage_differences(const ServingJob& job, const Deployment& deployment, const ServingResult& analytic,
                                               const ServingResult& simulated) {
  constexpr double noticed = 1e-3;
  std::vector<StageDifference> out;
  for (std::size_t i = 0; i < timed_stages; ++i) {
    const auto stage = static_cast<Stage>(i);
    StageDifference one{.name = std::string(name_of(stage)),
                        .analytic_s = Facts::stage_s(analytic, stage),
                        .simulated_s = Facts::stage_s(simulated, stage),
                        .reason = {}};
    const double more_s = one.simulated_s - one.analytic_s;
    if (std::abs(more_s) > noticed * simulated.e2e.mean_s) one.reason = reason_of(stage, {job, deployment, analytic, simulated, more_s});
    if (one.analytic_s > 0 || one.simulated_s > 0) out.push_back(std::move(one));
  }
  const std::vector<StageDifference> stages = out;
  out.push_back({"time to first token", analytic.ttft.mean_s, simulated.ttft.mean_s, {}});
  add_split(out, "first token: ", analytic.ttft_split, simulated.ttft_split, [&](PassMix::Part part) {
    return reason_among(stages, part == &PassMix::waiting ? std::span<const Stage>(split_waits) : std::span<const Stage>(split_computes));
  });
  if (simulated.tpot.mean_s >= 0 && analytic.tpot.mean_s >= 0) {
    out.push_back({"time per output token", analytic.tpot.mean_s, simulated.tpot.mean_s, {}});
    add_split(out, "per token: ", analytic.tpot_split, simulated.tpot_split,
              [&](PassMix::Part) { return reason_among(stages, split_decodes); });
  }
  out.push_back({"end to end", analytic.e2e.mean_s, simulated.e2e.mean_s, {}});
  return out;
}

}  // namespace rehearse::sim
