#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <CLI/App.hpp>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <memory>
#include <optional>
#include <thread>

#include "config/fnv.hpp"
#include "sim/cli/command.hpp"
#include "sim/cli/fit.hpp"
#include "sim/cli/job_options.hpp"
#include "sim/cli/number.hpp"
#include "sim/cli/progress_bar.hpp"
#include "sim/cli/signals_noted.hpp"
#include "sim/cli/whole_job_options.hpp"
#include "sim/report/version.hpp"
#include "sim/wholejob/run_shard.hpp"
#include "sim/wholejob/simulate_run.hpp"

namespace rehearse::cli {
namespace {

struct RunOptions {
  std::shared_ptr<JobOptions> job;
  std::string step, runs = "1", jobs, sweep, shard, merge;
};

struct Sweep {
  std::string key;
  std::vector<std::string> values;
};

// KEY=V1,V2,...; commas in brackets belong to the value.
Sweep parse_sweep(const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == 0 || equals == std::string::npos || equals + 1 == text.size()) {
    throw config::InputError(fmt::format("--sweep takes key=value,value,..., not '{}'", text),
                             "for example --sweep checkpoint.interval=10,20,40");
  }
  Sweep sweep{text.substr(0, equals), {""}};
  int depth = 0;
  for (const char c : text.substr(equals + 1)) {
    depth += (c == '[' || c == '{') - (c == ']' || c == '}');
    if (c == ',' && depth == 0) {
      sweep.values.emplace_back();
    } else {
      sweep.values.back() += c;
    }
  }
  return sweep;
}

int jobs_of(const RunOptions& options) {
  constexpr int most = 256;
  if (!options.jobs.empty()) return parse_count("--jobs", options.jobs, 1, most);
  return static_cast<int>(std::clamp(std::thread::hardware_concurrency(), 1U, static_cast<unsigned>(most)));
}

// A job of each value of the sweep, or the job alone, ready to run.
struct Planned {
  std::string value;  // of the swept key
  sim::Job job;
  sim::WholeJobPlan plan;
};

std::vector<std::unique_ptr<Planned>> planned_jobs(const RunOptions& options) {
  std::vector<std::unique_ptr<Planned>> all;
  const auto add = [&](const std::string& value, sim::Job job) {
    Planned& one = *all.emplace_back(std::make_unique<Planned>(Planned{value, std::move(job), {}}));
    one.plan = plan_with_step(one.job, options.step);
  };
  if (options.sweep.empty()) {
    add("", options.job->load(settings_of_step(options.step)));
  } else {
    const Sweep sweep = parse_sweep(options.sweep);
    auto settings = settings_of_step(options.step);
    settings.emplace_back(sweep.key, "");
    for (const std::string& value : sweep.values) {
      settings.back().second = value;
      add(value, options.job->load(settings));
    }
  }
  return all;
}

// Many runs, all of them here or a part of them, which is kept in a file.
class Runs {
 public:
  Runs(const RunOptions& options, int runs)
      : options_(options),
        runs_(static_cast<std::size_t>(runs)),
        planned_(planned_jobs(options)),
        hash_(hash()),
        state_(planned_.size(), runs_) {
    if (!options.shard.empty()) shard_ = sim::parse_shard(options.shard);
  }

  Exit run() {
    if (options_.merge.empty()) {
      simulate();
    } else {
      sim::read_all_runs(options_.merge, hash_, state_);
    }
    if (is_part()) return say_shard();
    return options_.sweep.empty() ? deliver_job() : deliver_sweep();
  }

 private:
  [[nodiscard]] bool is_part() const { return !options_.shard.empty(); }  // also where it is the only one

  // What is the same of every part.
  [[nodiscard]] std::string hash() const {
    std::string text = fmt::format("{}\n{} runs\n{}\n", sim::version(), runs_, options_.sweep);
    for (const auto& one : planned_) text += fmt::format("{} {} {}\n", sim::input_hash(one->job), one->plan.step_s, one->plan.step_method);
    return config::fnv1a(text);
  }

  void simulate() {
    const bool part = is_part();
    const std::string folder = options_.job->folder();
    std::optional<SignalsNoted> signals;
    if (part) signals.emplace();
    if (part && sim::read_runs(folder, shard_, hash_, state_)) spdlog::info("goes on after {} runs", done());
    ProgressBar bar("running");
    auto kept = std::chrono::steady_clock::now();
    for (std::size_t value = 0; value < planned_.size(); ++value) {
      const std::size_t first = value * runs_;
      const auto mine = [&](std::size_t i) { return shard_.has(first + i) && !state_.results[first + i]; };
      const auto ended = [&](std::size_t i, const sim::RunResult& result) {
        state_.results[first + i] = result;
        bar.update(static_cast<double>(done()) * shard_.of / static_cast<double>(state_.results.size()));
        const auto now = std::chrono::steady_clock::now();
        if (!part || (now - kept < std::chrono::seconds(30) && !asked_to_end())) return;
        sim::write_runs(folder, shard_, hash_, state_);
        kept = now;
        if (asked_to_end()) end_as_asked();
      };
      const sim::WholeJobPlan& plan = planned_[value]->plan;
      sim::simulate_some_runs(plan, plan.job->system.simulation.seed, static_cast<int>(runs_), jobs_of(options_), mine, ended,
                              &state_.states);
    }
    if (part) sim::write_runs(folder, shard_, hash_, state_);
  }

  [[nodiscard]] std::size_t done() const {
    return static_cast<std::size_t>(std::ranges::count_if(state_.results, [](const auto& result) { return result.has_value(); }));
  }

  [[nodiscard]] std::vector<sim::RunResult> results_of(std::size_t value) const {
    std::vector<sim::RunResult> results;
    for (std::size_t i = 0; i < runs_; ++i) results.push_back(*state_.results[value * runs_ + i]);
    return results;
  }

  Exit deliver_job() const {
    const Planned& one = *planned_.front();
    sim::WholeJobReport report = planned(one.plan);
    report.runs = results_of(0);
    report.states = state_.states;
    options_.job->deliver(sim::Report(sim::summary_of(one.job), "whole-job-").add(&report));
    return verdict(report);
  }

  Exit deliver_sweep() const {
    sim::WholeJobReport report;
    report.sweep_key = parse_sweep(options_.sweep).key;
    Exit exit = Exit::fine;
    for (std::size_t value = 0; value < planned_.size(); ++value) {
      const Planned& one = *planned_[value];
      const std::vector<sim::RunResult> results = results_of(value);
      sim::SweepPoint point{
          one.value, one.plan, sim::formula(one.plan.formula_input),
          sim::within(sim::statistics_over(results, [](const sim::RunResult& run) { return run.ettr(); }), 0, 1),
          sim::within(sim::statistics_over(results, [](const sim::RunResult& run) { return sim::to_s(run.wall); }), 0, INFINITY)};
      if (fit_verdict(one.job) != Exit::fine) exit = Exit::answer_is_no;
      report.sweep.push_back(std::move(point));
    }
    options_.job->deliver(sim::Report(sim::summary_of(options_.job->load(settings_of_step(options_.step))), "whole-job-").add(&report));
    return exit;
  }

  [[noreturn]] void end_as_asked() const {
    spdlog::warn("ended after {} runs; the same command goes on from there", done());
    end_by_signal();
  }

  Exit say_shard() const {
    spdlog::info("shard {} of {}: {} runs, wrote {}", shard_.number, shard_.of, done(),
                 (std::filesystem::path(options_.job->folder()) / shard_.file_name()).string());
    return Exit::fine;
  }

  const RunOptions& options_;
  std::size_t runs_;  // of each value
  std::vector<std::unique_ptr<Planned>> planned_;
  std::string hash_;
  sim::Shard shard_;
  sim::RunsState state_;
};

Exit run_once(const RunOptions& options) {
  const sim::Job job = options.job->load(settings_of_step(options.step));
  sim::WholeJobReport report = planned(plan_with_step(job, options.step));
  report.runs.push_back(sim::simulate_run(report.plan, job.system.simulation.seed, &report.history, &report.states));
  options.job->deliver(sim::Report(sim::summary_of(job), "whole-job-").add(&report));
  return verdict(report);
}

void check(const RunOptions& options, int runs) {
  static_cast<void>(jobs_of(options));  // refused also where one run needs none
  const bool parts = !options.shard.empty() || !options.merge.empty();
  if (!options.shard.empty() && !options.merge.empty())
    throw config::InputError("--merge puts together what --shard has written: give it alone");
  if (!options.shard.empty() && options.job->folder().empty())
    throw config::InputError("--shard needs a folder for what it runs", "add -o DIR");
  if (parts && runs == 1 && options.sweep.empty())
    throw config::InputError("a single run cannot be divided", "add --runs N, or --sweep KEY=V,V");
}

Exit run(const RunOptions& options) {
  constexpr int most_runs = 1'000'000;
  const int runs = parse_count("--runs", options.runs, 1, most_runs);
  check(options, runs);
  return runs == 1 && options.sweep.empty() ? run_once(options) : Runs(options, runs).run();
}

class Run final : public Command {
 public:
  [[nodiscard]] std::string_view summary() const override { return "Run the whole training job with failures, checkpoints and recovery"; }
  [[nodiscard]] std::string_view examples() const override {
    return "Examples:\n"
           "  rehearse run llama3-405b-54-days --runs 100\n"
           "  rehearse run job.yaml --step '27.8 s' --set 'faults={all: {source: poisson, rate: 0.005 /day}}'\n"
           "  rehearse run job.yaml --sweep checkpoint.interval=5,10,20,40,auto --runs 50\n"
           "  rehearse run job.yaml --runs 1000 --shard 3/8 -o out; rehearse run job.yaml --runs 1000 --merge out -o out\n";
  }
  [[nodiscard]] Action declare(CLI::App& app) const override {
    auto options = std::make_shared<RunOptions>();
    options->job = JobOptions::declare(app);
    declare_step(app, options->step);
    app.add_option("--runs", options->runs, "Runs, with seeds from the job's on; means and percentiles over them")->type_name("N");
    app.add_option("--jobs", options->jobs, "Runs at the same time, each in a process of its own; default: as many as there are processors")
        ->type_name("N");
    app.add_option("--sweep", options->sweep, "Run for each value of a key and compare, e.g. checkpoint.interval=10,20,40")
        ->type_name("KEY=V,V,...");
    app.add_option("--shard", options->shard, "Run part K of N of all runs and keep them in the folder of -o")->type_name("K/N");
    app.add_option("--merge", options->merge, "Put together the parts in this folder")->type_name("DIR");
    return [options] { return run(*options); };
  }
};

const CommandRegistry::Registration<Run> run_registration("run");

}  // namespace
}  // namespace rehearse::cli
