// Jobs with a section `serving`, under the commands that all jobs have.
#include <fmt/format.h>

#include <memory>

#include "sim/kind/job_kind.hpp"
#include "sim/serving/formula.hpp"
#include "sim/serving/serving_report.hpp"

namespace rehearse::sim {
namespace {

ServingJob read(const KindRequest& request) {
  config::Node document = request.document;
  if (request.seed) document.set("simulation.seed", std::to_string(*request.seed));
  return read_serving_job(document, request.name);
}

// What a command finds out, and whether its answer is yes.
class Finding {
 public:
  explicit Finding(ServingJob job) : kept_(std::make_unique<const ServingJob>(std::move(job))), job_(*kept_), deployment_(deploy(job_)) {
    report_.notes = job_.notes;
    if (!deployment_.misfit.empty()) report_.verdicts.push_back(deployment_.misfit);
    if (!deployment_.transfers) return;
    for (const KvAlignmentWork& work : deployment_.transfers->alignment())
      report_.notes.push_back("the cache is made to fit: " + work.reason);
  }

  [[nodiscard]] bool fits() const { return deployment_.misfit.empty(); }

  void predict() {
    const double tokens = mean_input();
    const ServingPrediction prediction =
        predict_serving(job_, deployment_, deployment_.transfers ? deployment_.transfers->alone_s(tokens) : 0,
                        deployment_.transfers ? deployment_.transfers->wire_bytes(tokens) : 0);
    if (prediction.overloaded.empty()) {
      report_.results.push_back(prediction.result);
    } else {
      report_.verdicts.push_back(prediction.overloaded);
    }
  }

  void simulate(bool keeps_run) {
    const ServingSetup setup = setup_of(job_, deployment_);
    auto run = std::make_shared<ServingRun>(simulate_serving(setup));
    report_.results.push_back(result_of(job_, setup, *run));
    const ServingResult& result = report_.results.back();
    if (result.finished < result.counted) {
      report_.verdicts.push_back(fmt::format("{} of {} requests that count were not served: their caches are larger than an instance's",
                                             result.counted - result.finished, result.counted));
    }
    if (keeps_run) report_.run = std::move(run);
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
    out[name + "_mean_ms"] = spread.mean_s * ms;
    if (spread.p50_s >= 0) out[name + "_p50_ms"] = spread.p50_s * ms;
    if (spread.p90_s >= 0) out[name + "_p90_ms"] = spread.p90_s * ms;
    if (spread.p99_s >= 0) out[name + "_p99_ms"] = spread.p99_s * ms;
  };
  put("ttft", result.ttft);
  put("tpot", result.tpot);
  put("itl", result.itl);
  put("e2e", result.e2e);
  out["ttft_ms"] = out["ttft_mean_ms"];
  out["tpot_ms"] = out["tpot_mean_ms"];
  return out;
}

class ServingKind final : public JobKind {
 public:
  [[nodiscard]] std::map<std::string, std::vector<KindOption>> commands() const override {
    const KindOption promise{"slo", "", "The answer is no (exit code 1) where the promise is not kept"};
    return {{"predict", {}}, {"simulate", {promise}}, {"compare", {promise}}};
  }

  [[nodiscard]] KindAnswer answer(const std::string& command, const KindRequest& request) const override {
    Finding finding(read(request));
    if (finding.fits()) {
      if (command != "simulate") finding.predict();
      if (command != "predict") finding.simulate(request.writes_files);
    }
    if (request.has("slo")) finding.demand_promise();
    return std::move(finding).answer();
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
    finding.simulate(false);
    return measures_of(finding.results().back());
  }

  [[nodiscard]] JobSummary summary(const std::string& name, const config::Node& document) const override {
    return serving_summary(read_serving_job(document, name));
  }
  [[nodiscard]] config::Shape shape() const override { return serving_shape(); }

 private:
  static Finding fitting(const std::string& name, const config::Node& document, const config::Node& models) {
    Finding finding(read_serving_job(document, name, models));
    if (!finding.fits()) throw config::InputError(finding.verdicts().front());
    return finding;
  }
};

const JobKindRegistry::Registration<ServingKind> registration("serving");

}  // namespace
}  // namespace rehearse::sim
