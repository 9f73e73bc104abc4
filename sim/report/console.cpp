// The report for people, on standard output.
#include <fmt/ostream.h>

#include <ostream>

#include "config/quantity.hpp"
#include "sim/report/console_tables.hpp"
#include "sim/report/expected_band.hpp"
#include "sim/report/job_head.hpp"
#include "sim/report/memory_table.hpp"
#include "sim/report/reporter.hpp"
#include "sim/report/training_cost.hpp"

namespace rehearse::sim {
namespace {

constexpr double tera = 1e12;
constexpr double gib = 1024.0 * 1024 * 1024;

// What four measurements in five would lie between, and what says so.
void print_bands(const StepResult& result, const ExpectedBands* bands, std::ostream& out) {
  if (bands == nullptr) return;
  if (bands->step) {
    const Milliseconds unit(result.step_s);
    fmt::print(out, "expected: {} to {} ms {:.0f} times in 10 ({})\n", unit(bands->step->low * result.step_s),
               unit(bands->step->high * result.step_s), 10 * bands->share, bands->step_basis);
  }
  if (result.memory.ranks.empty()) return;
  for (const ExpectedPeak& peak : bands->peaks) {
    const PeakRange range = peak_range(*bands, peak, result.memory);
    fmt::print(out, "expected memory, {}: {:.1f} to {}{:.1f} GiB ({})\n", memory_counters().of(peak.counter), range.low_bytes / gib,
               range.cut ? "all of " : "", range.high_bytes / gib, peak.basis);
  }
  if (bands->fits) fmt::print(out, "fits: {:.0f} times in 100 ({})\n", 100 * bands->fits->chance, bands->fits->basis);
}

void print_cost(const StepResult& result, const TrainingCost* cost, std::ostream& out) {
  if (cost == nullptr) return;
  fmt::print(out, "with causal attention counted half: {:.1f} TFLOP/s/GPU, MFU {}\n",
             cost->causal_share * result.model_flops_per_gpu_per_s / tera, percent(cost->causal_share * result.mfu));
  if (!cost->known()) return;
  const auto cents = [](double value) { return fmt::format("{:.{}f}", value, value < 100 ? 2 : 0); };
  const double gpu_hours = cost->gpu_hours(result);
  fmt::print(out, "training: {:.0f} steps, {}, {} GPU-hours", cost->steps_of(result),
             config::human_quantity(cost->seconds(result), config::Dimension::time), cents(gpu_hours));
  if (cost->price_per_gpu_hour > 0)
    fmt::print(out, ", {} at {} an hour", cents(gpu_hours * cost->price_per_gpu_hour), cost->price_per_gpu_hour);
  out << ", without failures and checkpoints\n";
}

void print_answer(const StepResult& result, std::ostream& out) {
  fmt::print(out, "\n{}: step {} ms, {:.0f} tokens/s/GPU, {:.1f} TFLOP/s/GPU, MFU {}, bubble {} of the rest\n", result.method,
             Milliseconds(result.step_s)(result.step_s), result.tokens_per_s_per_gpu, result.model_flops_per_gpu_per_s / tera,
             percent(result.mfu), percent(result.bubble_share));
  if (const std::string memory = memory_line(result); !memory.empty()) fmt::print(out, "{}\n", memory);
  for (const std::string& line : {steps_line(result), experts_line(result)}) {
    if (!line.empty()) fmt::print(out, "{}\n", line);
  }
}

void print_table(Table table, bool colour, std::ostream& out) {
  if (table.rows.empty()) return;
  table.bold_header = colour;
  out << '\n';
  table.print(out);
}

// How far symmetric ranks were folded, and what kept others apart: into so many classes.
void print_folding(const StepResult& result, std::ostream& out) {
  if (result.activities == 0) return;
  int all = 0;
  for (const RankResult& rank : result.ranks) all += rank.ranks;
  fmt::print(out, "ranks simulated: {} of {}", result.ranks.size(), all);
  for (const ToldApart& told : result.told_apart)
    fmt::print(out, "{} {} ({})", &told == result.told_apart.data() ? "; told apart by" : ",", told.by, told.classes);
  out << '\n';
}

void print_step(const StepResult& result, const Report& report, std::ostream& out) {
  const bool colour = report.colour;
  print_answer(result, out);
  print_bands(result, report.find<ExpectedBands>(), out);
  print_cost(result, report.find<TrainingCost>(), out);
  print_folding(result, out);
  print_table(phase_table(result), colour, out);
  Table stages = stage_table(result);
  if (stages.rows.size() > 1) print_table(std::move(stages), colour, out);
  print_table(memory_table(result), colour, out);
  print_table(drop_table(result), colour, out);
  print_table(collective_table(result), colour, out);
}

void print_comparison(const Comparison& comparison, const ExpectedBands* bands, const std::vector<FeatureEffect>* effects, bool colour,
                      std::ostream& out) {
  print_answer(comparison.analytic, out);
  print_answer(comparison.simulated, out);
  print_bands(comparison.simulated, bands, out);
  print_table(comparison_table(comparison), colour, out);
  if (!comparison.reasons.empty()) out << '\n';
  for (const std::string& reason : comparison.reasons) fmt::print(out, "- {}\n", reason);
  if (effects != nullptr) print_table(effect_table(*effects, comparison.simulated.step_s), colour, out);
  print_table(memory_table(comparison.simulated), colour, out);
  print_table(drop_table(comparison.simulated), colour, out);
  print_table(collective_table(comparison.simulated), colour, out);
}

void print_explanation(const Explanation& explanation, bool colour, std::ostream& out) {
  print_answer(explanation.now, out);
  out << "peaks here count a share for the allocator's cache, and steps none of the time that it takes where memory is full; predict goes "
         "through it tensor by tensor\n";
  print_table(explanation_table(explanation), colour, out);
  if (!explanation.idle.empty()) out << "\nwithout effect here:\n";
  for (const FeatureSwitch& feature : explanation.idle) fmt::print(out, "  {}: {}\n", feature.feature, feature.to);
  if (!explanation.refused.empty()) out << "\nnot possible here:\n";
  for (const FeatureSwitch& feature : explanation.refused) fmt::print(out, "  {}: {} ({})\n", feature.feature, feature.to, feature.refusal);
}

class Console final : public Reporter {
 public:
  [[nodiscard]] std::string_view file_name() const override { return ""; }
  [[nodiscard]] bool applies(const Report& report) const override { return !steps_of(report).empty(); }
  void write(const Report& report, std::ostream& out) const override {
    print_job(report.job, out);
    if (const auto* explanation = report.find<Explanation>()) return print_explanation(*explanation, report.colour, out);
    if (const auto* comparison = report.find<Comparison>())
      return print_comparison(*comparison, report.find<ExpectedBands>(), report.find<FeatureEffects>(), report.colour, out);
    for (const StepResult* result : steps_of(report)) print_step(*result, report, out);
  }
};

const ReporterRegistry::Registration<Console> console_registration("console");

}  // namespace
}  // namespace rehearse::sim
