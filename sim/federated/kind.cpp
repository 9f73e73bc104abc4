// Jobs with the section `federated`: what each command answers.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "sim/federated/explain.hpp"
#include "sim/federated/faults.hpp"
#include "sim/federated/reasons.hpp"
#include "sim/federated/sections.hpp"
#include "sim/federated/tune.hpp"
#include "sim/job/open_job.hpp"
#include "sim/kind/job_kind.hpp"

namespace rehearse::federated {
namespace {

using sim::KindAnswer;
using sim::KindOption;
using sim::KindRequest;

using JobPointer = std::shared_ptr<const Job>;

// --fault adds to simulation.faults, which the resolved job has too.
JobPointer read(const KindRequest& request) {
  auto job = std::make_shared<const Job>(read_job(request.name, request.document, request.seed));
  const auto given = request.options.find("fault");
  if (given == request.options.end() || given->second.empty()) return job;
  static_cast<void>(conditions_of(*job, given->second));  // refused in the option's own words
  config::Node document = request.document;
  sim::add_faults(document, given->second);
  return std::make_shared<const Job>(read_job(request.name, document, request.seed));
}

sim::Report report_of(const Job& job) { return sim::Report(summary_of(job), "federated-"); }

SimulatedRound simulated(const Job& job, const Plan& plan, const KindRequest& request) {
  return simulate_round(job, plan, conditions_of(job, {}), {.spans = request.writes_files, .progress = request.progress});
}

KindAnswer predict(const KindRequest& request) {
  const JobPointer job = read(request);
  RoundSection section{.job = job, .plan = make_plan(*job), .formula = {}, .simulated = {}, .reasons = {}};
  section.formula = round_by_formula(*job, section.plan);
  const bool yes = section.formula->anybody_finished();
  return {report_of(*job).own(std::move(section)), yes};
}

KindAnswer simulate(const KindRequest& request) {
  const JobPointer job = read(request);
  RoundSection section{.job = job, .plan = make_plan(*job), .formula = {}, .simulated = {}, .reasons = {}};
  section.simulated = simulated(*job, section.plan, request);
  const bool yes = section.simulated->counts();
  return {report_of(*job).own(std::move(section)), yes};
}

int whole_option(const KindRequest& request, const std::string& name, int otherwise, int most) {
  const std::string* text = request.option(name);
  if (text == nullptr) return otherwise;
  int value = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
  if (error == std::errc() && end == text->data() + text->size() && value >= 1 && value <= most) return value;
  throw config::InputError(fmt::format("--{} {}: a whole number from 1 to {} is wanted", name, config::shown(*text), most));
}

std::vector<std::string> split_at_commas(const std::string& text) {
  std::vector<std::string> parts{""};
  for (const char c : text) c == ',' ? parts.emplace_back() : parts.back() += c, void();
  return parts;
}

KindAnswer compare(const KindRequest& request) {
  const JobPointer job = read(request);
  RoundSection section{.job = job, .plan = make_plan(*job), .formula = {}, .simulated = {}, .reasons = {}};
  section.formula = round_by_formula(*job, section.plan);
  section.simulated = simulated(*job, section.plan, request);
  section.reasons = reasons_of(section);
  const bool yes = section.simulated->counts();
  sim::Report report = report_of(*job);
  if (const std::string* methods = request.option("methods")) {
    const std::vector<std::string> names = *methods == "all" ? std::vector<std::string>{} : split_at_commas(*methods);
    report.own(MethodRows(compare_methods(*job, names, {.runs = whole_option(request, "runs", 10, 10'000)})));
  }
  return {std::move(report.own(std::move(section))), yes};
}

CutSearch search_of(const KindRequest& request) {
  constexpr std::uint64_t exhaustively = 50'000'000;
  CutSearch search;
  if (request.has("exact")) search = {.gap = 0, .nodes = exhaustively};
  return search;
}

void refuse_with(const Job& job, bool given, const char* option, bool fits, const char* why) {
  static_cast<void>(job);
  if (given && !fits) throw config::InputError(fmt::format("--{}: {}", option, why));
}

KindAnswer tune(const KindRequest& request) {
  const JobPointer job = read(request);
  const Settings& settings = job->settings;
  const bool linear = settings.server.mode != ServerMode::batched && !job->total_power() && settings.objective == Objective::round;
  const std::string* by = request.option("by");
  if (by != nullptr && *by != "weighted") throw config::InputError("--by takes weighted", "tune without --by is exact for reserved shares");
  refuse_with(*job, request.has("decentral"), "decentral", linear,
              "the negotiation is for objective round, power per-hertz and a server per device");
  refuse_with(*job, request.has("exact"), "exact", linear || settings.objective == Objective::sum,
              "the enumeration is for power per-hertz and a server per device");
  const bool weighted = settings.radio.sharing == Sharing::weighted || settings.server.sharing == Sharing::weighted;
  refuse_with(*job, by != nullptr, "by weighted", weighted && linear, "the job's media are not work-conserving: set sharing to weighted");
  RoundSection section{.job = job, .plan = {}, .formula = {}, .simulated = {}, .reasons = {}};
  section.plan = settings.server.mode == ServerMode::batched ? make_plan(*job) : tuned_plan(*job, search_of(request));
  TuneSection tuned{.exact = request.has("exact"), .by_weighted = {}, .decentral = {}};
  if (by != nullptr) tuned.by_weighted = improve_by_simulation(*job, section.plan, request.progress);
  if (request.has("decentral")) tuned.decentral = decentral(*job);
  section.formula = round_by_formula(*job, section.plan);
  const bool yes = !tuned.exact || section.plan.proven;
  return {std::move(report_of(*job).own(std::move(section)).own(std::move(tuned))), yes};
}

KindAnswer explain(const KindRequest& request) {
  const JobPointer job = read(request);
  RoundSection section{.job = job, .plan = make_plan(*job), .formula = {}, .simulated = {}, .reasons = {}};
  section.formula = round_by_formula(*job, section.plan);
  section.simulated = simulate_round(*job, section.plan, conditions_of(*job, {}));
  section.reasons = reasons_of(section);
  Effects effects = effects_of(request.name, request.document, request.seed, request.progress);
  return {std::move(report_of(*job).own(std::move(section)).own(std::move(effects)))};
}

KindAnswer run(const KindRequest& request) {
  const JobPointer job = read(request);
  RunSection section{.job = job, .history = run_rounds(*job, request.progress)};
  const bool yes = std::ranges::any_of(section.history.rounds, [](const RoundRow& row) { return !row.lost && row.finished > 0; });
  return {report_of(*job).own(std::move(section)), yes};
}

class FederatedKind final : public sim::JobKind {
 public:
  [[nodiscard]] std::map<std::string, std::vector<KindOption>> commands() const override {
    const KindOption fault{"fault", "FAULT", "Something goes wrong in the round, e.g. 'device 3 slow 4'"};
    return {{"predict", {}},
            {"simulate", {fault}},
            {"compare",
             {fault,
              {"methods", "LIST",
               "Other ways of choosing cuts and shares: all, or some of tuned,equal,one-cut,random,federated,sequential,retune"},
              {"runs", "N", "Seeds of what a method draws; default 10"}}},
            {"explain", {}},
            {"tune",
             {{"exact", "", "Enumerate what the bound leaves open until the cuts are proven optimal"},
              {"by", "weighted", "Improve the choice by simulation of work-conserving media"},
              {"decentral", "", "Negotiate without a centre as well, and count its rounds and bytes"}}},
            {"run", {}}};
  }

  [[nodiscard]] KindAnswer answer(const std::string& command, const KindRequest& request) const override {
    static const std::map<std::string, KindAnswer (*)(const KindRequest&)> answers{
        {"predict", predict}, {"simulate", simulate}, {"compare", compare}, {"explain", explain}, {"tune", tune}, {"run", run}};
    return answers.at(command)(request);
  }

  [[nodiscard]] sim::JobSummary summary(const std::string& name, const config::Node& document) const override {
    return summary_of(read_job(name, document, {}));
  }
  [[nodiscard]] config::Shape shape() const override { return job_keys().shape(); }
};
const sim::JobKindRegistry::Registration<FederatedKind> federated_kind_registration("federated");

}  // namespace
}  // namespace rehearse::federated
