// Jobs with a section `serving`, under the commands that all jobs have.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "config/quantity.hpp"
#include "config/table.hpp"
#include "config/yaml_text.hpp"
#include "sim/job/open_job.hpp"
#include "sim/kind/job_kind.hpp"
#include "sim/report/trace_events.hpp"
#include "sim/serving/chosen_plan.hpp"
#include "sim/serving/formula.hpp"
#include "sim/serving/goodput.hpp"
#include "sim/serving/load_moments.hpp"
#include "sim/serving/pool_keys.hpp"
#include "sim/serving/service_faults.hpp"
#include "sim/serving/serving_report.hpp"
#include "sim/serving/time_splits.hpp"
#include "sim/serving/tune.hpp"

namespace rehearse::sim {
namespace {

config::Node document_of(const KindRequest& request) {
  config::Node document = request.document;
  if (request.seed) document.set("simulation.seed", std::to_string(*request.seed));
  return document;
}

// --fault adds to simulation.faults, which the resolved job has too.
ServingJob read(const KindRequest& request) {
  config::Node document = document_of(request);
  ServingJob job = read_serving_job(document, request.name);
  const auto given = request.options.find("fault");
  if (given == request.options.end() || given->second.empty()) return job;
  for (const std::string& item : given->second)
    static_cast<void>(read_service_fault(config::Node::load_text(config::yaml_text(item), "--fault"), job));
  add_faults(document, given->second);
  return read_serving_job(document, request.name);
}

// Why requests that count were not served.
std::string unserved(const ServingJob& job, const ServingResult& result) {
  const bool leaves = std::ranges::any_of(job.pools, [](const Pool& pool) { return pool.habits.watermark > 0; });
  const char* less_free = leaves ? ", less what stays free" : "";
  const int all = result.counted - result.finished;
  std::string text = fmt::format("{} of {} requests that count were not served: ", all, result.counted);
  if (result.rejected > 0) text += fmt::format("the caches of {} requests are larger than an instance's{}", result.rejected, less_free);
  if (result.lost > 0)
    text += fmt::format("{}{} requests were given up after hand-overs that timed out", result.rejected > 0 ? "; " : "", result.lost);
  if (const int left = all - result.rejected - result.lost; left > 0)
    text += fmt::format("{}{}no instance that could serve them came back", result.rejected + result.lost > 0 ? "; " : "",
                        left < all ? fmt::format("for {} ", left) : "");
  return text;
}

// Numbers as requests.csv has them, with commas between.
std::vector<RequestId> followed_requests(const std::string& list, std::size_t requests) {
  std::vector<RequestId> out;
  for (std::size_t begin = 0; begin <= list.size();) {
    const std::size_t end = std::min(list.find(',', begin), list.size());
    const std::string text = list.substr(begin, end - begin);
    begin = end + 1;
    const std::optional<double> number = config::number_in(text);
    if (!number || *number < 0 || *number >= static_cast<double>(requests) || *number != std::floor(*number))
      throw config::InputError(
          fmt::format("--trace-requests takes numbers of requests from 0 to {}, not {}", requests - 1, config::shown(text)));
    if (std::ranges::count(out, static_cast<RequestId>(*number)) > 0)
      throw config::InputError(fmt::format("--trace-requests has {} twice", text));
    out.push_back(static_cast<RequestId>(*number));
  }
  return out;
}

// What a command finds out, and whether its answer is yes.
class Finding {
 public:
  explicit Finding(ServingJob job) : kept_(std::make_unique<const ServingJob>(std::move(job))), job_(*kept_), deployment_(deploy(job_)) {
    report_.notes = job_.notes;
    if (!deployment_.misfit.empty()) report_.verdicts.push_back(deployment_.misfit);
    if (!deployment_.transfers) return;
    const std::vector<TransferLane>& lanes = deployment_.transfers->lanes();
    for (const TransferLane& lane : lanes) {
      const std::string who =
          lanes.size() > 1 ? fmt::format("from {} to {} ", job_.pools[lane.from_pool].name, job_.pools[lane.to_pool].name) : "";
      for (const KvAlignmentWork& work : lane.alignment)
        report_.notes.push_back(fmt::format("{}the cache is made to fit: {}", who, text_of(work)));
    }
  }

  [[nodiscard]] bool fits() const { return deployment_.misfit.empty(); }

  void predict() {
    if (!job_.faults.empty()) report_.notes.push_back("the formula knows no faults");
    if (std::string why = too_large(); !why.empty()) {
      report_.verdicts.push_back(std::move(why));
      return;
    }
    const ServingPrediction prediction = predict_serving(job_, deployment_, mean_input());
    if (prediction.overloaded.empty()) {
      report_.results.push_back(prediction.result);
      put_predicted_splits(report_.results.back(), job_, deployment_);
    } else {
      report_.verdicts.push_back(prediction.overloaded);
    }
  }

  // records_from_s: where files are wanted, from when on their timeline has slices; `from`: as it was written.
  void simulate(std::optional<double> records_from_s, const std::string& from = "", const std::string* followed = nullptr) {
    ServingSetup setup = setup_of(job_, deployment_);
    if (followed != nullptr) setup.followed = followed_requests(*followed, setup.requests.size());
    setup.records = records_from_s.has_value();
    setup.slices_from_s = records_from_s.value_or(0);
    auto run = std::make_shared<ServingRun>(simulate_serving(setup));
    if (setup.slices_from_s > 0 && setup.slices_from_s >= run->end_s) {
      config::Node::load_text(config::yaml_text(from), "--trace-from")
          .fail(fmt::format("{} is behind the end, at {}: timeline.json would be empty", from,
                            config::human_quantity(run->end_s, config::Dimension::time)));
    }
    for (const ServiceFault& fault : job_.faults) {
      if (fault.from_s < run->end_s) continue;
      report_.notes.push_back(fmt::format("'{}' is after the end, at {}, and strikes nothing", fault.text,
                                          config::human_quantity(run->end_s, config::Dimension::time)));
    }
    report_.results.push_back(result_of(job_, setup, *run));
    const ServingResult& result = report_.results.back();
    if (result.finished < result.counted) report_.verdicts.push_back(unserved(job_, result));
    if (records_from_s) report_.run = std::move(run);
  }

  // Where the formula has an answer.
  void compare() {
    if (report_.results.size() == 2)
      report_.differences = stage_differences(job_, deployment_, report_.results.front(), report_.results.back());
  }

  void find_goodput(const config::Node& serving, const std::function<void(double)>& progress) {
    if (job_.promise.ttft_s <= 0 && job_.promise.tpot_s <= 0)
      serving.fail_at_key("--goodput needs a promise", "write serving.slo: {ttft: 1 s, tpot: 50 ms}");
    if (moments_of(job_.load, job_.seed).rate_per_s <= 0)
      serving.at("load").at("arrivals").fail("--goodput needs requests that come at a rate", "write for example arrivals: {poisson: 6 /s}");
    report_.results.back().goodput_per_s = goodput_of(job_, deployment_, progress);
  }

  void explain(const config::Node& document, bool with_goodput, const std::function<void(double)>& progress) {
    report_.effects = serving_effects(document, job_, with_goodput, progress);
  }

  // With `promised` the answer is no where none of them keeps the promise.
  void compare_methods(const config::Node& document, const std::string& list, bool promised, const std::function<void(double)>& progress) {
    if (promised) demand_promise();
    report_.methods = serving_methods(document, job_, list, progress);
    const auto serves = [](const ServingEffect& method) {
      return method.simulated && method.simulated->finished == method.simulated->counted;
    };
    const auto keeps = [&](const ServingEffect& method) { return serves(method) && method.simulated->kept; };
    if (std::ranges::none_of(report_.methods, serves))
      report_.verdicts.emplace_back("no method serves all requests");
    else if (promised && std::ranges::none_of(report_.methods, keeps))
      report_.verdicts.emplace_back("no method keeps the promise");
  }

  void run(int runs, const std::function<void(double)>& progress) {
    report_.days = std::make_shared<ServiceDays>(run_service(job_, deployment_, runs, progress));
  }

  void demand_promise() {
    if (job_.promise.ttft_s <= 0 && job_.promise.tpot_s <= 0)
      throw config::InputError("--slo needs a promise", "write slo: {ttft: 1 s, tpot: 50 ms}");
    if (!report_.results.empty() && !report_.results.back().kept) report_.verdicts.push_back("the promise is not kept");
  }

  [[nodiscard]] const std::vector<ServingResult>& results() const { return report_.results; }
  [[nodiscard]] const std::vector<std::string>& verdicts() const { return report_.verdicts; }

  [[nodiscard]] KindAnswer answer() && {
    const bool yes = report_.verdicts.empty();
    KindAnswer answer{Report(serving_summary(job_), "serving-"), yes};
    answer.report.own(std::move(report_));
    return answer;
  }

 private:
  // Why a mean request finds no room in some pool; "": it does.
  [[nodiscard]] std::string too_large() const {
    const LoadMoments load = moments_of(job_.load, job_.seed);
    for (std::size_t i = 0; i < job_.pools.size(); ++i) {
      const InstanceRules& rules = deployment_.pools[i].rules;
      const double tokens = load.input + (rules.role == Role::prefill ? 0 : load.output),
                   room = static_cast<double>(rules.usable_pages() * rules.page), states = static_cast<double>(rules.state_tokens());
      if (tokens + states > room)
        return fmt::format("pool {}: a request of {:.0f} tokens{} does not fit into an instance's cache of {:.0f}", job_.pools[i].name,
                           tokens, states > 0 ? fmt::format(", and states as large as {:.0f} more,", states) : "", room);
    }
    return "";
  }

  [[nodiscard]] double mean_input() const {
    constexpr int enough = 10'000;
    workloads::LoadSpec load = job_.load;
    load.requests = std::min(load.requests, enough);
    double sum = 0;
    for (const workloads::Request& request : draw_requests(load, job_.seed)) sum += request.tokens.input;
    return sum / load.requests;
  }

  std::unique_ptr<const ServingJob> kept_;  // the deployment refers to it
  const ServingJob& job_;
  Deployment deployment_;
  ServingReport report_;
};

JobKind::Measures measures_of(const ServingResult& result) {
  constexpr double ms = 1e3;
  JobKind::Measures out{{"output_tokens_per_s", result.output_tokens_per_s},
                        {"output_tokens_per_s_per_gpu", result.output_tokens_per_s_per_decode_gpu},
                        {"input_tokens_per_s_per_gpu", result.input_tokens_per_s_per_prompt_gpu},
                        {"kv_transfer_ms", result.kv_transfer_s * ms},
                        {"makespan_s", result.makespan_s}};
  const auto put = [&](const std::string& name, const Spread& spread) {
    if (spread.mean_s >= 0) out[name + "_mean_ms"] = spread.mean_s * ms;
    if (spread.p50_s >= 0) out[name + "_p50_ms"] = spread.p50_s * ms;
    if (spread.p90_s >= 0) out[name + "_p90_ms"] = spread.p90_s * ms;
    if (spread.p99_s >= 0) out[name + "_p99_ms"] = spread.p99_s * ms;
  };
  put("ttft", result.ttft);
  put("tpot", result.tpot);
  put("itl", result.itl);
  put("e2e", result.e2e);
  if (result.ttft.mean_s >= 0) out["ttft_ms"] = result.ttft.mean_s * ms;
  if (result.tpot.mean_s >= 0) out["tpot_ms"] = result.tpot.mean_s * ms;
  return out;
}

class ServingKind final : public JobKind {
 public:
  [[nodiscard]] std::map<std::string, std::vector<KindOption>> commands() const override {
    const KindOption promise{"slo", "", "The answer is no (exit code 1) where the promise is not kept"};
    const KindOption fault{"fault", "ITEM", "What goes wrong: 'instance decode.2 at 120 s for 90 s' (may be repeated)"};
    const KindOption goodput{"goodput", "", "Also the highest rate at which the promise is kept, by bisection"};
    const KindOption from{"trace-from", "TIME", "From when on timeline.json has passes and hand-overs, at most 200,000 of them"};
    const KindOption followed{"trace-requests", "LIST", "Numbers of requests that have tracks of their own in timeline.json: 0,17"};
    const KindOption args{"trace-args", "full|none", "'none': those of timeline.json have names only"};
    const KindOption runs{"runs", "N", "Histories of failures, with seeds from the job's on"};
    const KindOption methods{"methods", "LIST", "apart,together: the two sides on the same GPUs, apart and together, side by side"};
    const KindOption sweep{"sweep", "KEY=VALUE,...", "Tunes for each value of a key of the job, and shows the optimum of each"};
    const KindOption top{"top", "N", "So many of the best are simulated, as tune.confirm of the job"};
    return {{"predict", {}},
            {"run", {fault, runs}},
            {"simulate", {promise, fault, goodput, from, followed, args}},
            {"compare", {promise, methods}},
            {"explain", {goodput}},
            {"tune", {top, sweep}}};
  }

  [[nodiscard]] KindAnswer answer(const std::string& command, const KindRequest& request) const override {
    if (command == "tune") return tune(request);
    Finding finding(read(request));
    if (command == "run") {
      if (finding.fits()) finding.run(runs_of(request), request.progress);
      return std::move(finding).answer();
    }
    if (const std::string* methods = request.option("methods")) {
      if (finding.fits()) finding.compare_methods(document_of(request), *methods, request.has("slo"), request.progress);
      return std::move(finding).answer();
    }
    const std::optional<double> records = command == "explain" ? std::nullopt : records_from_s(request);
    if (finding.fits()) {
      if (command != "simulate") finding.predict();
      const std::string* from = request.option("trace-from");
      if (command != "predict") finding.simulate(records, from == nullptr ? "" : *from, request.option("trace-requests"));
      if (command == "compare") finding.compare();
    }
    if (command == "explain" && finding.fits()) finding.explain(document_of(request), request.has("goodput"), request.progress);
    if (request.has("goodput") && finding.fits()) finding.find_goodput(request.document.at("serving"), request.progress);
    if (request.has("slo")) finding.demand_promise();
    KindAnswer answer = std::move(finding).answer();
    const std::string* args = request.option("trace-args");
    answer.report.own(TraceStyle{.with_args = args == nullptr || *args == "full"});
    return answer;
  }

  [[nodiscard]] Measures predicted_measures(const std::string& name, const config::Node& document,
                                            const config::Node& models) const override {
    Finding finding = fitting(name, document, models);
    finding.predict();
    // Beyond its capacity a formula for steady states has nothing to say.
    return finding.results().empty() ? Measures{} : measures_of(finding.results().back());
  }

  [[nodiscard]] Measures simulated_measures(const std::string& name, const config::Node& document,
                                            const config::Node& models) const override {
    Finding finding = fitting(name, document, models);
    finding.simulate({});
    return measures_of(finding.results().back());
  }

  [[nodiscard]] JobSummary summary(const std::string& name, const config::Node& document) const override {
    return serving_summary(read_serving_job(document, name));
  }
  [[nodiscard]] config::Shape shape() const override { return serving_shape(); }

 private:
  static KindAnswer tune(const KindRequest& asked) {
    KindRequest request = asked;
    if (const std::string* top = asked.option("top"))
      request.document.set("tune.confirm", std::to_string(whole_number("top", *top, 0, most_simulated)));
    const ServingJob job = read(request);
    check_tunable(job, request.document.at("serving"));
    ServingReport report;
    report.notes = job.notes;
    if (const std::string* sweep = asked.option("sweep")) {
      report.sweep = std::make_shared<TuneSweep>(tune_over(document_of(request), request.name, *sweep, request.progress));
      for (const TunedPoint& point : report.sweep->points) {
        for (const std::string& note : point.tuning->notes) {
          if (std::ranges::find(report.notes, note) == report.notes.end()) report.notes.push_back(note);
        }
        if (!point.tuning->chosen)
          report.verdicts.push_back(fmt::format("{} {}: no deployment keeps the promise", report.sweep->key, point.value));
      }
      KindAnswer answer{Report(serving_summary(job), "serving-"), report.verdicts.empty()};
      answer.report.own(std::move(report));
      return answer;
    }
    auto tuning = std::make_shared<ServingTuning>(tune_serving(job, request.progress));
    if (tuning->best.empty())
      report.verdicts.emplace_back("no deployment within the inventory keeps the promise, by formula");
    else if (!tuning->chosen)
      report.verdicts.emplace_back("none of the deployments that were simulated keeps the promise");
    else
      report.plan_yaml = chosen_plan(job, *tuning);
    report.notes.insert(report.notes.end(), tuning->notes.begin(), tuning->notes.end());
    report.tuning = std::move(tuning);
    KindAnswer answer{Report(serving_summary(job), "serving-"), report.verdicts.empty()};
    answer.report.own(std::move(report));
    return answer;
  }

  // From when on the timeline has slices; nothing where no files are wanted.
  static std::optional<double> records_from_s(const KindRequest& request) {
    const std::string* from = request.option("trace-from");
    for (const char* option : {"trace-from", "trace-requests"}) {
      if (request.has(option) && !request.writes_files)
        throw config::InputError(fmt::format("--{} is about timeline.json, a file of -o", option), "add -o DIR");
    }
    if (!request.writes_files) return std::nullopt;
    if (from == nullptr) return 0;
    std::string why;
    const auto from_s = config::parse_quantity(*from, config::Dimension::time, why);
    if (!from_s || *from_s < 0)
      throw config::InputError(fmt::format("--trace-from takes a time, not {}{}", config::shown(*from), from_s ? "" : ": " + why));
    return from_s;
  }

  static constexpr int most_runs = 10'000, most_simulated = 1000;

  static int runs_of(const KindRequest& request) {
    const std::string* text = request.option("runs");
    return text == nullptr ? 1 : whole_number("runs", *text, 1, most_runs);
  }

  static int whole_number(const char* option, const std::string& text, int least, int most) {
    const std::optional<double> number = config::number_in(text);
    if (!number || *number < least || *number > most || *number != std::floor(*number))
      throw config::InputError(fmt::format("--{} takes a whole number from {} to {}, not {}", option, least, most, config::shown(text)));
    return static_cast<int>(*number);
  }

  static Finding fitting(const std::string& name, const config::Node& document, const config::Node& models) {
    Finding finding(read_serving_job(document, name, models));
    if (!finding.fits()) throw config::InputError(finding.verdicts().front());
    return finding;
  }
};

const JobKindRegistry::Registration<ServingKind> serving_kind_registration("serving");

}  // namespace
}  // namespace rehearse::sim
