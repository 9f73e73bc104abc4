// result.json: everything a step result holds (docs/output-formats.md). Numbers are the shortest text that reads back as the same double.
#include <nlohmann/json.hpp>
#include <ostream>

#include "sim/report/expected_band.hpp"
#include "sim/report/job_head.hpp"
#include "sim/report/json_text.hpp"
#include "sim/report/reporter.hpp"
#include "sim/report/training_cost.hpp"

namespace rehearse::sim {
namespace {

using Json = nlohmann::ordered_json;

Json phases_json(const PhaseTimes& phases) {
  Json json;
  for (std::size_t i = 0; i < phase_count; ++i) json[std::string(key_of(static_cast<Phase>(i)))] = phases.seconds[i];
  return json;
}

Json rank_json(const RankResult& rank) {
  return {{"rank", rank.rank}, {"stage", rank.stage}, {"ranks", rank.ranks}, {"phases_s", phases_json(rank.phases)}};
}

Json memory_json(const RankMemory& memory) {
  Json at_peak;
  for (std::size_t i = 0; i < memory_use_count; ++i) at_peak[std::string(name_of(static_cast<MemoryUse>(i)))] = memory.at_peak.bytes[i];
  return {{"rank", memory.rank},
          {"stage", memory.stage},
          {"ranks", memory.ranks},
          {"peak_bytes", memory.peak_bytes()},
          {"tensor_bytes", memory.tensor_bytes()},
          {"needed_bytes", memory.needed_bytes()},
          {"device_bytes", memory.device_bytes()},
          {"cache_bytes", memory.cached_bytes},
          {"cache", memory.cache_simulated ? "simulated" : "share"},
          {"retaken_bytes", memory.retaken_bytes},
          {"capacity_bytes", memory.capacity_bytes},
          {"fits", memory.fits()},
          {"at_s", memory.at_s},
          {"operation", memory.operation},
          {"microbatch", memory.microbatch},
          {"step", memory.step},
          {"host_bytes", memory.host_bytes},
          {"at_peak_bytes", std::move(at_peak)}};
}

Json collective_json(const CollectiveResult& collective) {
  return {{"name", collective.name},
          {"group", collective.group},
          {"algorithm", collective.algorithm},
          {"protocol", collective.protocol},
          {"ranks", collective.ranks},
          {"bytes", collective.bytes},
          {"calls", collective.calls},
          {"seconds", collective.seconds},
          {"longest_s", collective.longest_s},
          {"in_step_s", collective.in_step_s},
          {"algbw_bytes_per_s", collective.algbw_bytes_per_s},
          {"busbw_bytes_per_s", collective.busbw_bytes_per_s}};
}

template <class T>
Json array_json(const std::vector<T>& items, Json (*item_json)(const T&)) {
  Json json = Json::array();
  for (const T& item : items) json.push_back(item_json(item));
  return json;
}

Json layer_json(const ExpertLayerLoad& load) {
  return {{"step", load.step},
          {"layer", load.layer},
          {"routed_tokens", load.routed},
          {"dropped_tokens", load.dropped},
          {"hot_rank", load.rank},
          {"hot_microbatch", load.microbatch},
          {"hot_tokens", load.tokens}};
}

Json experts_json(const ExpertLoadResult& experts) {
  return {{"hot_step", experts.step},
          {"hot_rank", experts.rank},
          {"hot_layer", experts.layer},
          {"hot_microbatch", experts.microbatch},
          {"hot_tokens", experts.tokens},
          {"mean_tokens", experts.mean_tokens},
          {"dropped_share", experts.dropped_share},
          {"chunks", experts.chunks},
          {"layers", array_json(experts.layers, layer_json)}};
}

int all_ranks(const StepResult& result) {
  int all = 0;
  for (const RankResult& rank : result.ranks) all += rank.ranks;
  return all;
}

Json told_apart_json(const ToldApart& told) { return {{"by", told.by}, {"classes", told.classes}}; }

Json plain_step_json(const StepResult& result) {
  const HostMemory& host = result.memory.host;
  return {{"method", result.method},
          {"step_s", result.step_s},
          {"tokens_per_s", result.tokens_per_s},
          {"tokens_per_s_per_gpu", result.tokens_per_s_per_gpu},
          {"model_flops_per_gpu_per_s", result.model_flops_per_gpu_per_s},
          {"mfu", result.mfu},
          {"bubble_share", result.bubble_share},
          {"mean_phases_s", phases_json(result.mean)},
          {"step_seconds", result.step_seconds},
          {"activities", result.activities},
          {"simulated_ranks", result.ranks.size()},
          {"all_ranks", all_ranks(result)},
          {"told_apart", array_json(result.told_apart, told_apart_json)},
          {"seed", result.seed},
          {"input_hash", result.input_hash},
          {"ranks", array_json(result.ranks, rank_json)},
          {"memory",
           {{"fits", result.memory.fits()},
            {"host", {{"node", host.node}, {"bytes", host.bytes}, {"capacity_bytes", host.capacity_bytes}}},
            {"ranks", array_json(result.memory.ranks, memory_json)}}},
          {"collectives", array_json(result.collectives, collective_json)}};
}

Json step_json(const StepResult& result) {
  Json json = plain_step_json(result);
  if (!result.solver.empty()) json["solver"] = result.solver;
  if (result.experts) json["experts"] = experts_json(*result.experts);
  return json;
}

Json difference_json(const PhaseDifference& phase) {
  return {{"phase", key_of(phase.phase)},
          {"analytic_s", phase.analytic_s},
          {"simulated_s", phase.simulated_s},
          {"difference_s", phase.simulated_s - phase.analytic_s},
          {"reason", phase.reason}};
}

Json comparison_json(const Comparison& comparison) {
  return {
      {"difference", comparison.difference}, {"reasons", comparison.reasons}, {"phases", array_json(comparison.phases, difference_json)}};
}

Json switch_json(const FeatureSwitch& feature) {
  Json settings = Json::object();
  for (const auto& [key, value] : feature.settings) settings[key] = value;
  Json json = {{"feature", feature.feature}, {"from", feature.from}, {"to", feature.to}, {"set", std::move(settings)}};
  if (!feature.possible()) {
    json["refusal"] = feature.refusal;
    return json;
  }
  json.update({{"step_s", feature.step_s}, {"peak_bytes", feature.peak_bytes}, {"fits", feature.fits}});
  return json;
}

Json explanation_json(const Explanation& explanation) {
  return {{"switches", array_json(explanation.switches, switch_json)},
          {"without_effect", array_json(explanation.idle, switch_json)},
          {"refused", array_json(explanation.refused, switch_json)}};
}

Json effect_json(const FeatureEffect& effect) {
  return {{"feature", effect.feature},
          {"value", effect.value},
          {"without", effect.without},
          {"analytic_s", effect.analytic_s},
          {"simulated_s", effect.simulated_s},
          {"analytic_bytes", effect.analytic_bytes},
          {"simulated_bytes", effect.simulated_bytes}};
}

Json band_json(const std::optional<ErrorBand>& band, double answer, const std::string& basis) {
  if (!band) return nullptr;
  return {{"low", band->low * answer}, {"high", band->high * answer}, {"basis", basis}};
}

// Around what was counted where the band was measured.
Json peak_json(const ExpectedBands& bands, const ExpectedPeak& peak, const MemoryResult& memory) {
  const PeakRange range = peak_range(bands, peak, memory);
  return {{"low", range.low_bytes},
          {"high", range.high_bytes},
          {"cut", range.cut},
          {"basis", peak.basis},
          {"counter", memory_counters().of(peak.counter)}};
}

Json known_json(const Measured& known) {
  return {{"gpu", known.gpu                 ? "measured"
                  : known.gpu_by_data_sheet ? "data sheet"
                                            : "others"},
          {"software", known.software ? "measured" : "others"},
          {"network", known.network_by_line_rates ? "line rates" : "described"},
          {"scale", known.scale ? "measured" : "not measured"}};
}

Json bands_json(const ExpectedBands& bands, const StepResult& result) {
  Json peaks = Json::array();
  if (!result.memory.ranks.empty()) {
    for (const ExpectedPeak& peak : bands.peaks) peaks.push_back(peak_json(bands, peak, result.memory));
  }
  Json json{{"share", bands.share},
            {"step_s", band_json(bands.step, result.step_s, bands.step_basis)},
            {"memory_bytes", peaks.empty() ? Json() : peaks.front()},
            {"peaks", peaks}};
  if (bands.step) json["known"] = known_json(bands.known);
  if (bands.fits) json["fits"] = {{"chance", bands.fits->chance}, {"basis", bands.fits->basis}};
  return json;
}

Json cost_json(const TrainingCost& cost, const StepResult& result) {
  Json json{{"mfu_causal", cost.causal_share * result.mfu}};
  if (!cost.known()) return json;
  json["training"] = {{"steps", cost.steps_of(result)}, {"seconds", cost.seconds(result)}, {"gpu_hours", cost.gpu_hours(result)}};
  if (cost.price_per_gpu_hour > 0) json["training"]["price"] = cost.gpu_hours(result) * cost.price_per_gpu_hour;
  return json;
}

Json report_json(const Report& report) {
  Json json = head_json(report.job);
  json["results"] = Json::object();
  for (const StepResult* result : steps_of(report)) {
    Json& step = json["results"][result->method] = step_json(*result);
    if (const auto* cost = report.find<TrainingCost>()) step.update(cost_json(*cost, *result));
    if (const auto* bands = report.find<ExpectedBands>()) step["expected"] = bands_json(*bands, *result);
  }
  if (const auto* comparison = report.find<Comparison>()) json["comparison"] = comparison_json(*comparison);
  if (const auto* explanation = report.find<Explanation>()) json["explanation"] = explanation_json(*explanation);
  if (const auto* effects = report.find<FeatureEffects>()) json["features"] = array_json(*effects, effect_json);
  return json;
}

class ResultJson final : public Reporter {
 public:
  [[nodiscard]] std::string_view file_name() const override { return "result.json"; }
  [[nodiscard]] bool applies(const Report& report) const override { return !steps_of(report).empty(); }
  void write(const Report& report, std::ostream& out) const override { print_json(report_json(report), out); }
};

const ReporterRegistry::Registration<ResultJson> result_json_registration("json");

}  // namespace
}  // namespace rehearse::sim
