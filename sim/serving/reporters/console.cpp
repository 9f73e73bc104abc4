// Serving results for people.
#include <fmt/format.h>
#include <fmt/ostream.h>
#include <fmt/ranges.h>

#include <array>
#include <cmath>

#include "config/quantity.hpp"
#include "sim/report/job_head.hpp"
#include "sim/report/reporter.hpp"
#include "sim/report/table.hpp"
#include "sim/serving/reporters/days_text.hpp"
#include "sim/serving/reporters/tuning_text.hpp"
#include "sim/serving/serving_report.hpp"

namespace rehearse::sim {
namespace {

std::string time_text(double seconds) { return seconds < 0 ? "" : config::human_quantity(seconds, config::Dimension::time); }

Table latency_table(const ServingReport& report) {
  Table table{.columns = {{"", Align::left}, {"method", Align::left}, {"mean"}, {"50 %"}, {"90 %"}, {"99 %"}}};
  struct Row {
    const char* name;
    Spread ServingResult::*spread;
  };
  constexpr std::array<Row, 4> rows{{{"time to first token", &ServingResult::ttft},
                                     {"time per output token", &ServingResult::tpot},
                                     {"between tokens", &ServingResult::itl},
                                     {"end to end", &ServingResult::e2e}}};
  for (const Row& row : rows) {
    for (const ServingResult& result : report.results) {
      const Spread& spread = result.*row.spread;
      table.rows.push_back(
          {row.name, result.method, time_text(spread.mean_s), time_text(spread.p50_s), time_text(spread.p90_s), time_text(spread.p99_s)});
    }
  }
  return table;
}

Table pool_table(const ServingReport& report) {
  Table table{.columns = {{"pool", Align::left},
                          {"method", Align::left},
                          {"instances"},
                          {"GPUs"},
                          {"busy"},
                          {"batch"},
                          {"pass"},
                          {"cache (tokens)"},
                          {"taken"},
                          {"at most"},
                          {"preempted"}}};
  for (const ServingResult& result : report.results) {
    for (const PoolResult& pool : result.pools) {
      table.rows.push_back({pool.name, result.method, std::to_string(pool.instances), std::to_string(pool.gpus),
                            fmt::format("{:.1f} %", 100 * pool.busy), fmt::format("{:.1f}", pool.batch), time_text(pool.pass_s),
                            fmt::format("{:.0f}", pool.cache_tokens), fmt::format("{:.1f} %", 100 * pool.pages_share),
                            fmt::format("{:.1f} %", 100 * pool.most_pages_share), fmt::format("{:.0f}", pool.preemptions)});
    }
  }
  return table;
}

Table stage_table(const ServingResult& result) {
  Table table{.columns = {{"stage of a request", Align::left}, {"mean"}, {"share"}}};
  for (std::size_t stage = 0; stage < timed_stages; ++stage) {
    const std::string name(name_of(static_cast<Stage>(stage)));
    const auto found = result.stages.find(name);
    if (found == result.stages.end() || found->second <= 0) continue;
    table.rows.push_back({name, time_text(found->second), fmt::format("{:.1f} %", 100 * found->second / result.e2e.mean_s)});
  }
  return table;
}

Table difference_table(const ServingReport& report) {
  Table table{.columns = {{"stage of a request", Align::left}, {"analytic"}, {"simulated"}, {"difference"}, {""}, {"reason", Align::left}}};
  for (const StageDifference& one : report.differences) {
    constexpr double rounding = 1e-12;
    const double apart_s = one.simulated_s - one.analytic_s;
    const double more_s = std::abs(apart_s) < rounding ? 0 : apart_s;
    table.rows.push_back({one.name, time_text(one.analytic_s), time_text(one.simulated_s),
                          fmt::format("{}{}", more_s < 0 ? "-" : "+", time_text(std::abs(more_s))),
                          one.analytic_s > 0 ? fmt::format("{:+.1f} %", 100 * more_s / one.analytic_s) : "", one.reason});
  }
  return table;
}

void print_rates(const ServingResult& result, std::ostream& out) {
  fmt::print(out, "\n{}: {:.4g} requests/s, {:.5g} input and {:.5g} output tokens/s", result.method, result.requests_per_s,
             result.input_tokens_per_s, result.output_tokens_per_s);
  fmt::print(out, "; {:.4g} output tokens/s per GPU", result.output_tokens_per_s_per_gpu);
  if (result.output_tokens_per_s_per_decode_gpu > result.output_tokens_per_s_per_gpu) {  // other GPUs compute prompts
    fmt::print(out, " ({:.4g} input per prefill GPU, {:.4g} output per decode GPU)", result.input_tokens_per_s_per_prompt_gpu,
               result.output_tokens_per_s_per_decode_gpu);
  }
  fmt::print(out, "\n");
  if (result.kv_transfer_s > 0) {
    fmt::print(out, "hand-over of a cache: {} of {} in {}\n", config::human_quantity(result.kv_transfer_bytes, config::Dimension::bytes),
               "GPU memory", time_text(result.kv_transfer_s));
  }
  for (const PoolResult& pool : result.pools) {
    if (pool.prefix_share > 0)
      fmt::print(out, "pool {}: {:.1f} % of the prompts' tokens were found in its cache\n", pool.name, 100 * pool.prefix_share);
    if (pool.swapped_bytes > 0)
      fmt::print(out, "pool {}: {} of caches went to the hosts' memory and back, {:.1f} % of the time that passes took\n", pool.name,
                 config::human_quantity(pool.swapped_bytes, config::Dimension::bytes), 100 * pool.swap_share);
  }
  if (result.counted > result.finished) {
    fmt::print(out, "{} of {} counted requests not served", result.counted - result.finished, result.counted);
    if (result.rejected > 0) fmt::print(out, ", {} of all rejected since no instance can hold them", result.rejected);
    fmt::print(out, "\n");
  }
  if (result.failures > 0 || result.retried > 0) {
    fmt::print(
        out, "failures: {} of instances; {} requests began again ({:.0f} tokens computed twice), {} lost; longest gap between tokens {}\n",
        result.failures, result.retried, result.redone_tokens, result.lost, time_text(result.longest_gap_s));
  }
  if (result.attained >= 0) {
    fmt::print(out, "promise: {:.1f} % within the first-token time, {:.1f} % within the time per token, {:.1f} % within both: {}\n",
               100 * result.attained_ttft, 100 * result.attained_tpot, 100 * result.attained, result.kept ? "kept" : "not kept");
  }
  if (result.promised_ttft_s >= 0 && result.attained < 0) {  // a simulation has the shares
    fmt::print(out, "promise: its share of the requests sees the first token within {}", time_text(result.promised_ttft_s));
    if (result.promised_tpot_s >= 0) fmt::print(out, " and a further one every {}", time_text(result.promised_tpot_s));
    fmt::print(out, ": {}\n", result.kept ? "kept" : "not kept");
  }
  if (std::isinf(result.goodput_per_s)) {
    fmt::print(out, "goodput: there are too few requests to find one; the promise is kept when they come at once\n");
  } else if (result.goodput_per_s >= 0) {
    fmt::print(out, "goodput: {:.4g} requests/s keep the promise\n", result.goodput_per_s);
  }
  if (result.cost_per_s > 0) {
    constexpr double seconds_per_hour = 3600, million = 1e6;
    fmt::print(out, "cost: {:.4g} per hour", result.cost_per_s * seconds_per_hour);
    if (result.output_tokens_per_s > 0)
      fmt::print(out, ", {:.4g} per million output tokens", result.cost_per_s / result.output_tokens_per_s * million);
    fmt::print(out, "\n");
  }
}

// In means that people would notice.
bool makes_a_difference(const ServingResult& with, const ServingResult& now) {
  constexpr double noticed = 1e-3;
  const auto differs = [](double value, double before) { return std::abs(value - before) > noticed * std::abs(before); };
  return differs(with.ttft.mean_s, now.ttft.mean_s) || differs(with.tpot.mean_s, now.tpot.mean_s) ||
         differs(with.output_tokens_per_s, now.output_tokens_per_s) || differs(with.attained, now.attained) ||
         differs(with.goodput_per_s, now.goodput_per_s) || differs(with.cost_per_s, now.cost_per_s);
}

std::string goodput_text(const ServingResult& result) {
  if (result.goodput_per_s < 0) return "";
  return std::isinf(result.goodput_per_s) ? "too few requests" : fmt::format("{:.4g} /s", result.goodput_per_s);
}
std::string cost_text(const ServingResult& result) {
  constexpr double seconds_per_hour = 3600;
  return result.cost_per_s > 0 ? fmt::format("{:.4g} /h", result.cost_per_s * seconds_per_hour) : "";
}

Table effect_table(const ServingReport& report, std::vector<std::string>& idle) {
  Table table{.columns = {{"with", Align::left}, {"first token"}, {""}, {"per token"}, {""}, {"output tokens/s"}, {""}, {"in promise"}}};
  const ServingResult& now = report.results.back();
  const bool goodput = now.goodput_per_s >= 0, cost = now.cost_per_s > 0;
  if (goodput) table.columns.push_back({"goodput"});
  if (cost) table.columns.push_back({"cost"});
  const std::size_t columns = table.columns.size();
  const auto change = [](double value, double before) { return before > 0 ? fmt::format("{:+.1f} %", 100 * (value / before - 1)) : ""; };
  for (const ServingEffect& effect : report.effects) {
    const std::string what = fmt::format("{}: {}", effect.key, effect.value);
    if (!effect.simulated) {
      table.rows.push_back({what, "not possible"});
      table.rows.back().resize(columns);
      continue;
    }
    const ServingResult& with = *effect.simulated;
    if (!makes_a_difference(with, now)) {
      idle.push_back(what);
      continue;
    }
    table.rows.push_back({what, time_text(with.ttft.mean_s), change(with.ttft.mean_s, now.ttft.mean_s), time_text(with.tpot.mean_s),
                          change(with.tpot.mean_s, now.tpot.mean_s), fmt::format("{:.5g}", with.output_tokens_per_s),
                          change(with.output_tokens_per_s, now.output_tokens_per_s),
                          with.attained >= 0 ? fmt::format("{:.1f} %", 100 * with.attained) : ""});
    if (goodput) table.rows.back().push_back(goodput_text(with));
    if (cost) table.rows.back().push_back(cost_text(with));
  }
  return table;
}

Table method_table(const std::vector<ServingEffect>& methods) {
  Table table{.columns = {{"method", Align::left},
                          {"", Align::left},
                          {"GPUs"},
                          {"first token"},
                          {"90 %"},
                          {"per token"},
                          {"90 %"},
                          {"output tokens/s"},
                          {"in promise"},
                          {"goodput"},
                          {"cost"}}};
  for (const ServingEffect& method : methods) {
    if (!method.simulated) {
      table.rows.push_back({method.key, method.value, "", "not possible", "", "", "", "", "", "", ""});
      continue;
    }
    const ServingResult& with = *method.simulated;
    table.rows.push_back({method.key, method.value, std::to_string(with.gpus()), time_text(with.ttft.mean_s), time_text(with.ttft.p90_s),
                          time_text(with.tpot.mean_s), time_text(with.tpot.p90_s), fmt::format("{:.5g}", with.output_tokens_per_s),
                          with.attained >= 0 ? fmt::format("{:.1f} %", 100 * with.attained) : "", goodput_text(with), cost_text(with)});
  }
  return table;
}

void print_methods(const std::vector<ServingEffect>& methods, bool colour, std::ostream& out) {
  fmt::print(out, "\nthe same requests on the same GPUs (simulated):\n");
  Table table = method_table(methods);
  table.bold_header = colour;
  table.print(out);
  for (const ServingEffect& method : methods) {
    if (!method.simulated) fmt::print(out, "{}, {}: not possible: {}\n", method.key, method.value, method.refused);
  }
}

class ServingConsole final : public Reporter {
 public:
  [[nodiscard]] std::string_view file_name() const override { return ""; }
  [[nodiscard]] bool applies(const Report& report) const override { return report.has<ServingReport>(); }
  void write(const Report& report, std::ostream& out) const override {
    const ServingReport& serving = report.get<ServingReport>();
    print_job(report.job, out);
    for (const std::string& note : serving.notes) fmt::print(out, "note: {}\n", note);
    if (!serving.results.empty()) {
      fmt::print(out, "\n");
      show(latency_table(serving), report.colour, out);
      fmt::print(out, "\n");
      show(pool_table(serving), report.colour, out);
      fmt::print(out, "\n");
      show(serving.differences.empty() ? stage_table(serving.results.back()) : difference_table(serving), report.colour, out);
      for (const ServingResult& result : serving.results) print_rates(result, out);
    }
    if (!serving.effects.empty()) {
      fmt::print(out, "\nthe same requests with one choice changed (means, simulated):\n");
      std::vector<std::string> idle;
      show(effect_table(serving, idle), report.colour, out);
      if (!idle.empty()) fmt::print(out, "without a difference: {}\n", fmt::join(idle, "; "));
    }
    if (!serving.methods.empty()) print_methods(serving.methods, report.colour, out);
    if (serving.days) print_days(*serving.days, report.colour, out);
    if (serving.sweep) print_sweep(*serving.sweep, report.colour, out);
    if (serving.tuning) print_tuning(*serving.tuning, report.colour, out);
    for (const std::string& verdict : serving.verdicts) fmt::print(out, "\nno: {}\n", verdict);
  }

 private:
  static void show(Table table, bool colour, std::ostream& out) {
    table.bold_header = colour;
    table.print(out);
  }
};

const ReporterRegistry::Registration<ServingConsole> serving_console_registration("serving-console");

}  // namespace
}  // namespace rehearse::sim
