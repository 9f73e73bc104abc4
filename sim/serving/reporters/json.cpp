// result.json of a serving job: the same keys by every method (docs/serving.md, "Outputs").
#include <nlohmann/json.hpp>
#include <ostream>

#include "sim/report/job_head.hpp"
#include "sim/report/reporter.hpp"
#include "sim/serving/serving_report.hpp"

namespace rehearse::sim {
namespace {

using Json = nlohmann::ordered_json;

Json or_null(double value) { return value < 0 ? Json(nullptr) : Json(value); }

Json spread_json(const Spread& spread) {
  return {{"mean_s", spread.mean_s}, {"p50_s", or_null(spread.p50_s)}, {"p90_s", or_null(spread.p90_s)}, {"p99_s", or_null(spread.p99_s)}};
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
          {"recomputed_tokens", pool.recomputed_tokens}};
}

Json result_json(const ServingResult& result) {
  Json json{{"ttft", spread_json(result.ttft)},
            {"tpot", spread_json(result.tpot)},
            {"itl", spread_json(result.itl)},
            {"e2e", spread_json(result.e2e)},
            {"stages_s", result.stages},
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
            {"within_promise", or_null(result.attained)},
            {"within_ttft", or_null(result.attained_ttft)},
            {"within_tpot", or_null(result.attained_tpot)},
            {"promise_kept", result.kept},
            {"cost_per_s", result.cost_per_s}};
  Json pools = Json::array();
  for (const PoolResult& pool : result.pools) pools.push_back(pool_json(pool));
  json["pools"] = std::move(pools);
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
    json["verdicts"] = serving.verdicts;
    out << json.dump(2) << '\n';
  }
};

const ReporterRegistry::Registration<ServingJson> registration("serving-json");

}  // namespace
}  // namespace rehearse::sim
