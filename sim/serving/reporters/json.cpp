// result.json of a serving job: the same keys by every method (docs/serving.md, "Outputs").
#include <cmath>
#include <nlohmann/json.hpp>
#include <ostream>

#include "sim/report/job_head.hpp"
#include "sim/report/json_text.hpp"
#include "sim/report/reporter.hpp"
#include "sim/serving/pool_keys.hpp"
#include "sim/serving/serving_report.hpp"
#include "sim/serving/tune_keys.hpp"

namespace rehearse::sim {
namespace {

using Json = nlohmann::ordered_json;

Json or_null(double value) { return value < 0 ? Json(nullptr) : Json(value); }

Json spread_json(const Spread& spread) {
  return {{"mean_s", or_null(spread.mean_s)},
          {"p50_s", or_null(spread.p50_s)},
          {"p90_s", or_null(spread.p90_s)},
          {"p99_s", or_null(spread.p99_s)}};
}

Json pool_json(const PoolResult& pool) {
  return {{"name", pool.name},
          {"instances", pool.instances},
          {"gpus", pool.gpus},
          {"busy", pool.busy},
          {"batch", pool.batch},
          {"pass_s", pool.pass_s},
          {"cache_tokens", pool.cache_tokens},
          {"cache_taken", pool.pages_share},
          {"cache_taken_at_most", pool.most_pages_share},
          {"preemptions", pool.preemptions},
          {"recomputed_tokens", pool.recomputed_tokens},
          {"swapped_bytes", pool.swapped_bytes},
          {"swap_share", pool.swap_share},
          {"prefix_share", pool.prefix_share}};
}

// Of a time that some request had.
Json split_json(const PassMix& mix, const Spread& of) {
  Json json;
  if (of.mean_s < 0) return json;
  for (const PassMix::Named& one : PassMix::parts()) json[std::string(one.name)] = mix.*one.part;
  return json;
}

Json result_json(const ServingResult& result) {
  Json json{{"ttft", spread_json(result.ttft)},
            {"tpot", spread_json(result.tpot)},
            {"itl", spread_json(result.itl)},
            {"e2e", spread_json(result.e2e)},
            {"stages_s", result.stages},
            {"ttft_split_s", split_json(result.ttft_split, result.ttft)},
            {"tpot_split_s", split_json(result.tpot_split, result.tpot)},
            {"requests_per_s", result.requests_per_s},
            {"input_tokens_per_s", result.input_tokens_per_s},
            {"output_tokens_per_s", result.output_tokens_per_s},
            {"output_tokens_per_s_per_gpu", result.output_tokens_per_s_per_gpu},
            {"input_tokens_per_s_per_prefill_gpu", result.input_tokens_per_s_per_prompt_gpu},
            {"output_tokens_per_s_per_decode_gpu", result.output_tokens_per_s_per_decode_gpu},
            {"kv_transfer_s", result.kv_transfer_s},
            {"kv_transfer_bytes", result.kv_transfer_bytes},
            {"makespan_s", result.makespan_s},
            {"requests", result.requests},
            {"counted", result.counted},
            {"finished", result.finished},
            {"rejected", result.rejected},
            {"instance_failures", result.failures},
            {"retried", result.retried},
            {"lost", result.lost},
            {"redone_tokens", result.redone_tokens},
            {"longest_gap_s", result.longest_gap_s},
            {"within_promise", or_null(result.attained)},
            {"within_ttft", or_null(result.attained_ttft)},
            {"within_tpot", or_null(result.attained_tpot)},
            {"promised_ttft_s", or_null(result.promised_ttft_s)},
            {"promised_tpot_s", or_null(result.promised_tpot_s)},
            {"promise_kept", result.kept},
            {"goodput_requests_per_s", std::isfinite(result.goodput_per_s) ? or_null(result.goodput_per_s) : Json(nullptr)},
            {"cost_per_s", result.cost_per_s}};
  Json pools = Json::array();
  for (const PoolResult& pool : result.pools) pools.push_back(pool_json(pool));
  json["pools"] = std::move(pools);
  return json;
}

Json pools_json(const std::vector<Pool>& all) {
  Json pools = Json::array();
  for (const Pool& pool : all) {
    pools.push_back(
        {{"name", pool.name},
         {"role", role_names().of(pool.role)},
         {"part", pool.part},
         {"instances", pool.instances},
         {"tp", pool.plan.tp},
         {"pp", pool.plan.pp},
         {"dp", pool.plan.dp},
         {"ep", pool.plan.ep},
         {"precision",
          {{"compute", name_of(pool.wanted)}, {"weights", name_of(pool.plan.precision.weights)}, {"kv", name_of(pool.plan.precision.kv)}}},
         {"sequences", pool.habits.sequences},
         {"tokens", pool.habits.tokens}});
    if (pool.plan.model.mixer) pools.back()["precision"]["state"] = name_of(pool.plan.precision.state);
    if (pool.longest_prompt > 0) pools.back()["longest_prompt"] = pool.longest_prompt;
  }
  return pools;
}

Json tuned_json(const TunedDeployment& one, const ServingTuning& tuning) {
  Json json{{"kind", one.kind}, {"cost_per_s", one.cost_per_s}, {"gpus", one.gpus}, {"ttft_s", one.ttft_s}, {"tpot_s", one.tpot_s}};
  json["output_tokens_per_s_per_gpu"] =
      tuning.output_tokens_per_s * (one.rate_per_s > 0 ? one.rate_per_s / tuning.rate_per_s : 1) / one.gpus;
  if (one.rate_per_s > 0) json["requests_per_s"] = one.rate_per_s;
  if (one.below_per_s > 0) json["carries_less_than_per_s"] = one.below_per_s;
  json["pools"] = pools_json(one.pools);
  json["twins"] = one.twins;
  json["without_effect"] = one.without_effect;
  if (one.simulated) json["simulated"] = result_json(*one.simulated);
  return json;
}
Json tuning_json(const ServingTuning& tuning) {
  Json goals = Json::array();
  for (const ServingGoal goal : tuning.goals) goals.push_back(serving_goal_names().of(goal));
  Json json{{"goal", goals.front()},
            {"goals", goals},
            {"parts", tuning.parts},
            {"requests_per_s", tuning.rate_per_s},
            {"plans", tuning.plans},
            {"refused", tuning.refused},
            {"unfit", tuning.unfit},
            {"twins", tuning.twins},
            {"pairs", tuning.pairs},
            {"pairs_looked_at", tuning.looked_at},
            {"near_misses", tuning.near_misses},
            {"others_cost_per_s_at_least", std::isfinite(tuning.bound_per_s) ? Json(tuning.bound_per_s) : Json(nullptr)},
            {"chosen", tuning.chosen ? Json(*tuning.chosen) : Json(nullptr)}};
  json["best"] = Json::array();
  for (const TunedDeployment& one : tuning.best) json["best"].push_back(tuned_json(one, tuning));
  if (!tuning.front.empty()) json["front"] = Json::array();
  for (const TunedDeployment& one : tuning.front) json["front"].push_back(tuned_json(one, tuning));
  return json;
}

Json effects_json(const std::vector<ServingEffect>& effects) {
  Json json = Json::array();
  for (const ServingEffect& effect : effects) {
    Json one{{"key", effect.key}, {"value", effect.value}};
    if (effect.simulated) {
      one["simulated"] = result_json(*effect.simulated);
    } else {
      one["refused"] = effect.refused;
    }
    json.push_back(std::move(one));
  }
  return json;
}

Json methods_json(const std::vector<ServingEffect>& methods) {
  Json json = Json::array();
  for (const ServingEffect& method : methods) {
    Json one{{"method", method.key}, {"deployment", method.value}};
    if (method.simulated) {
      one["gpus"] = method.simulated->gpus();
      one["simulated"] = result_json(*method.simulated);
    } else {
      one["refused"] = method.refused;
    }
    json.push_back(std::move(one));
  }
  return json;
}

Json differences_json(const std::vector<StageDifference>& differences) {
  Json json = Json::array();
  for (const StageDifference& one : differences)
    json.push_back({{"phase", one.name}, {"analytic_s", one.analytic_s}, {"simulated_s", one.simulated_s}, {"reason", one.reason}});
  return json;
}

Json sweep_json(const TuneSweep& sweep) {
  Json json{{"key", sweep.key}, {"points", Json::array()}};
  for (const TunedPoint& point : sweep.points) json["points"].push_back({{"value", point.value}, {"tune", tuning_json(*point.tuning)}});
  return json;
}

Json day_json(const ServiceDays& days, const ServiceDay& day) {
  Json up = Json::object();
  for (std::size_t pool = 0; pool < days.pools.size(); ++pool) up[days.pools[pool]] = day.up[pool];
  return {{"availability", days.availability(day)},
          {"requests", day.requests},
          {"within_promise", day.within},
          {"within_per_s", day.within_per_s},
          {"minutes_kept", day.minutes_kept},
          {"longest_below_min", day.longest_below_min},
          {"instance_failures", day.instance_failures},
          {"retried", day.retried},
          {"lost", day.lost},
          {"redone_tokens", day.recomputed_tokens},
          {"longest_gap_s", day.longest_gap_s},
          {"up", std::move(up)}};
}

Json days_json(const ServiceDays& days) {
  Json json{{"seconds", days.seconds}, {"without_failures", day_json(days, days.healthy)}};
  json["runs"] = Json::array();
  for (const ServiceDay& day : days.runs) json["runs"].push_back(day_json(days, day));
  return json;
}

class ServingJson final : public Reporter {
 public:
  [[nodiscard]] std::string_view file_name() const override { return "result.json"; }
  [[nodiscard]] bool applies(const Report& report) const override { return report.has<ServingReport>(); }
  void write(const Report& report, std::ostream& out) const override {
    const ServingReport& serving = report.get<ServingReport>();
    Json json = head_json(report.job);
    json["kind"] = "serving";
    json["notes"] = serving.notes;
    json["results"] = Json::object();
    for (const ServingResult& result : serving.results) json["results"][result.method] = result_json(result);
    if (!serving.differences.empty()) json["differences"] = differences_json(serving.differences);
    if (serving.tuning) json["tune"] = tuning_json(*serving.tuning);
    if (serving.sweep) json["sweep"] = sweep_json(*serving.sweep);
    if (!serving.effects.empty()) json["effects"] = effects_json(serving.effects);
    if (!serving.methods.empty()) json["methods"] = methods_json(serving.methods);
    if (serving.days) json["run"] = days_json(*serving.days);
    json["verdicts"] = serving.verdicts;
    print_json(json, out);
  }
};

const ReporterRegistry::Registration<ServingJson> serving_json_registration("serving-json");

}  // namespace
}  // namespace rehearse::sim
