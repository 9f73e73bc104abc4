// What `run` writes (docs/serving.md, "Days with failures"): days.csv, a row per run; minutes.csv, a row per run and minute; faults.csv,
// what was drawn. Run 0 is without failures.
#include <cmath>

#include "sim/report/csv.hpp"
#include "sim/report/reporter.hpp"
#include "sim/serving/serving_report.hpp"

namespace rehearse::sim {
namespace {

const ServiceDays* days_of(const Report& report) {
  const auto* serving = report.find<ServingReport>();
  return serving != nullptr ? serving->days.get() : nullptr;
}

template <class Write>
void for_each_day(const ServiceDays& days, Write write) {
  write(0, days.healthy);
  for (std::size_t run = 0; run < days.runs.size(); ++run) write(static_cast<int>(run) + 1, days.runs[run]);
}

class DaysCsv final : public Reporter {
 public:
  [[nodiscard]] std::string_view file_name() const override { return "days.csv"; }
  [[nodiscard]] bool applies(const Report& report) const override { return days_of(report) != nullptr; }
  void write(const Report& report, std::ostream& out) const override {
    const ServiceDays& days = *days_of(report);
    out << "run,requests,within_promise,within_per_s,availability,minutes_kept,longest_below_min,instance_failures,retried,lost,recomputed_"
           "tokens,"
           "longest_gap_s";
    for (const std::string& pool : days.pools) out << ',' << csv_cell("up_" + pool);
    out << '\n';
    for_each_day(days, [&](int run, const ServiceDay& day) {
      out << run << ',' << day.requests << ',' << day.within << ',' << csv_cell(day.within_per_s) << ',' << csv_cell(days.availability(day))
          << ',' << csv_cell(day.minutes_kept) << ',' << day.longest_below_min << ',' << day.instance_failures << ',' << day.retried << ','
          << day.lost << ',' << csv_cell(day.recomputed_tokens) << ',' << csv_cell(day.longest_gap_s);
      for (const double up : day.up) out << ',' << csv_cell(up);
      out << '\n';
    });
  }
};

class MinutesCsv final : public Reporter {
 public:
  [[nodiscard]] std::string_view file_name() const override { return "minutes.csv"; }
  [[nodiscard]] bool applies(const Report& report) const override { return days_of(report) != nullptr; }
  void write(const Report& report, std::ostream& out) const override {
    out << "run,minute,requests,within_ttft,within_tpot,within_promise\n";
    for_each_day(*days_of(report), [&](int run, const ServiceDay& day) {
      for (std::size_t i = 0; i < day.minutes.size(); ++i) {
        const ServiceMinute& minute = day.minutes[i];
        csv_row(out, run, static_cast<int>(i), minute.requests, minute.ttft, minute.tpot, minute.both);
      }
    });
  }
};

class ServiceFaultsCsv final : public Reporter {
 public:
  [[nodiscard]] std::string_view file_name() const override { return "faults.csv"; }
  [[nodiscard]] bool applies(const Report& report) const override { return days_of(report) != nullptr; }
  void write(const Report& report, std::ostream& out) const override {
    out << "run,fault,kind,from_s,for_s,times,instances,links\n";
    for_each_day(*days_of(report), [&](int run, const ServiceDay& day) {
      for (const ServiceFault& fault : day.faults) {
        constexpr std::array<std::string_view, 4> kinds{"fails", "slow", "link", "cut"};
        csv_row(out, run, fault.text, kinds[static_cast<std::size_t>(fault.kind)], fault.from_s,
                std::isfinite(fault.for_s) ? csv_cell(fault.for_s) : "", fault.times, static_cast<int>(fault.instances.size()),
                static_cast<int>(fault.links.size()));
      }
    });
  }
};

const ReporterRegistry::Registration<DaysCsv> days_csv_registration("serving-days-csv");
const ReporterRegistry::Registration<MinutesCsv> minutes_csv_registration("serving-minutes-csv");
const ReporterRegistry::Registration<ServiceFaultsCsv> service_faults_csv_registration("serving-faults-csv");

}  // namespace
}  // namespace rehearse::sim
