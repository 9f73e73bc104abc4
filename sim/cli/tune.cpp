#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <CLI/App.hpp>
#include <algorithm>
#include <chrono>
#include <thread>

#include "sim/cli/command.hpp"
#include "sim/cli/job_options.hpp"
#include "sim/cli/number.hpp"
#include "sim/cli/progress_bar.hpp"
#include "sim/cli/signals_noted.hpp"
#include "sim/job/open_job.hpp"
#include "sim/tune/report.hpp"
#include "sim/tune/shard_file.hpp"

namespace rehearse::cli {
namespace {

struct TuneOptions {
  std::shared_ptr<JobOptions> job;
  std::vector<std::string> space;
  std::string goal, keep, confirm, price, memory, fits, jobs, shard, merge, resume;
  bool exhaustive = false, all = false;
};

// Points a second, the best so far and the time that is left, a few times a second.
class Progress {
 public:
  Progress(const sim::Search& search, std::uint64_t points) : search_(search), all_(std::max<std::uint64_t>(1, points)) {}

  void update(std::uint64_t points, const sim::Found& found) {
    const auto now = std::chrono::steady_clock::now();
    if (now - drawn_ < std::chrono::milliseconds(300)) return;
    drawn_ = now;
    const double seconds = std::chrono::duration<double>(now - begin_).count(),
                 rate = static_cast<double>(points) / std::max(seconds, 1e-3);
    const double left_s = static_cast<double>(all_ - std::min(all_, points)) / std::max(rate, 1e-3);
    std::string best;
    if (!found.best.all().empty())
      best = ", best " + sim::GoalValues::text(search_.goals().goals().front(), found.best.all().front().goals[0]);
    bar_.update(static_cast<double>(points) / static_cast<double>(all_),
                fmt::format(" {:.0f} points/s, {:.0f} s left{}", rate, left_s, best));
  }

 private:
  const sim::Search& search_;
  std::uint64_t all_;
  ProgressBar bar_{"tuning"};
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now(), drawn_;
};

// Options say what the section `tune` says, and come after it.
std::vector<std::pair<std::string, std::string>> settings_of(const TuneOptions& options) {
  std::vector<std::pair<std::string, std::string>> all;
  const auto set = [&](const std::string& text, const char* key, const std::string& value) {
    if (!text.empty()) all.emplace_back(key, value);
  };
  set(options.goal, "tune.goal", "[" + options.goal + "]");
  set(options.keep, "tune.keep", options.keep);
  set(options.confirm, "tune.confirm", options.confirm);
  set(options.memory, "tune.memory", options.memory);
  set(options.fits, "tune.fits", options.fits);
  set(options.price, "tune.price", "{gpu_hour: " + options.price + "}");
  return all;
}

int jobs_of(const TuneOptions& options) {
  constexpr int most = 1024;
  if (!options.jobs.empty()) return parse_count("--jobs", options.jobs, 1, most);
  return static_cast<int>(std::clamp(std::thread::hardware_concurrency(), 1U, static_cast<unsigned>(most)));
}

// Where parts of the search are kept; "": nowhere.
std::string folder_of(const TuneOptions& options) {
  if (!options.resume.empty()) return options.resume;
  return options.job->folder();
}

void check(const TuneOptions& options) {
  if (!options.merge.empty() && (!options.shard.empty() || !options.resume.empty()))
    throw config::InputError("--merge puts together what --shard and --resume have written: give it alone");
  if (!options.shard.empty() && folder_of(options).empty())
    throw config::InputError("--shard needs a folder for what it finds", "add -o DIR");
  if (options.all && options.job->folder().empty()) throw config::InputError("--all needs a folder for tune.csv", "add -o DIR");
}

class Tuning {
 public:
  explicit Tuning(const TuneOptions& options)
      : options_(options),
        request_(options.job->job_request(settings_of(options))),
        given_(sim::given_document(request_)),
        spec_(read_spec(given_)),
        space_(given_, sim::name_of(request_), spec_, more_axes(options)),
        search_(space_, spec_, options.exhaustive ? sim::Bounds::none() : sim::Bounds{}, options.all, &asked_to_end()),
        hash_(sim::search_hash(space_, spec_, search_)),
        state_(search_) {
    if (!options.shard.empty()) shard_ = sim::parse_shard(options.shard);
  }

  Exit run() {
    if (options_.merge.empty()) {
      search();
    } else {
      sim::read_all_shards(options_.merge, hash_, state_);
    }
    if (!is_part()) deliver();
    if (ended_) end_as_asked();
    if (is_part()) return say_shard();
    return state_.found.best.all().empty() ? Exit::answer_is_no : Exit::fine;
  }

 private:
  [[nodiscard]] bool is_part() const { return !options_.shard.empty(); }  // also where it is the only one

  static sim::TuneSpec read_spec(const config::Node& given) {
    sim::TuneSpec spec;
    if (const auto section = given.find("tune")) sim::tune_keys().read(*section, spec);
    return spec;
  }
  static std::vector<sim::GivenValues> more_axes(const TuneOptions& options) {
    std::vector<sim::GivenValues> all;
    for (const std::string& text : options.space) all.push_back(sim::parse_values("--space", text));
    return all;
  }

  void search() {
    const std::string folder = folder_of(options_);
    if (!folder.empty() && sim::read_shard(folder, shard_, hash_, state_)) {
      spdlog::info("goes on after {} of {} points", state_.found.points, space_.size());
    } else if (!options_.resume.empty()) {
      throw config::InputError(fmt::format("there is no {} in {} to go on from", shard_.file_name(), config::shown(folder)),
                               "without --resume the search begins anew");
    }
    const std::vector<bool> before = state_.done;
    Progress progress(search_, space_.size() / static_cast<std::uint64_t>(shard_.of));
    std::atomic<std::uint64_t> points = state_.found.points;
    auto kept = std::chrono::steady_clock::now();
    const auto done = [&](std::uint64_t block, const sim::Found& found) {
      state_.add(block, found);
      progress.update(points, state_.found);
      const auto now = std::chrono::steady_clock::now();
      if (folder.empty() || now - kept < std::chrono::seconds(30)) return;
      sim::write_shard(folder, shard_, hash_, state_);
      kept = now;
    };
    search_.run(
        jobs_of(options_), [&](std::uint64_t block) { return shard_.has(block) && !before[block]; }, done, asked_to_end(), points);
    ended_ = asked_to_end();
    if (!folder.empty() && (is_part() || ended_)) sim::write_shard(folder, shard_, hash_, state_);
  }

  void deliver() {
    std::optional<sim::Job> job;
    sim::TuneReport report = sim::report_of(space_, spec_, search_, state_.found, job);
    if (!ended_ && spec_.confirm > 0 && !report.best.empty()) {
      ProgressBar bar("confirming");
      sim::confirm(space_, report, spec_.confirm, jobs_of(options_), [&](double share) { bar.update(share); });
    }
    sim::Report all(sim::summary_of(job ? *job : space_.base_of(0)), "tune-");
    all.add(&report);
    options_.job->deliver(all);
    // The search is over: what it would have gone on from is not needed any more.
    if (!ended_ && options_.merge.empty() && !folder_of(options_).empty())
      std::filesystem::remove(std::filesystem::path(folder_of(options_)) / shard_.file_name());
  }

  [[noreturn]] void end_as_asked() const {
    const std::string folder = folder_of(options_);
    const std::string part = is_part() ? fmt::format("--shard {}/{} -o {}", shard_.number, shard_.of, folder) : "--resume " + folder;
    spdlog::warn("ended after {} of {} points; {}", state_.found.points, space_.size() / static_cast<std::uint64_t>(shard_.of),
                 folder.empty() ? "with -o DIR it could go on from there" : part + " goes on from there");
    end_by_signal();
  }

  Exit say_shard() const {
    spdlog::info("shard {} of {}: {} points, wrote {}", shard_.number, shard_.of, state_.found.points,
                 (std::filesystem::path(folder_of(options_)) / shard_.file_name()).string());
    return Exit::fine;
  }

  const TuneOptions& options_;
  SignalsNoted signals_;
  sim::JobRequest request_;
  config::Node given_;
  sim::TuneSpec spec_;
  sim::Space space_;
  sim::Search search_;
  std::string hash_;
  sim::Shard shard_;
  sim::ShardState state_;
  bool ended_ = false;  // in the middle of the search; a signal that comes later finds it over
};

Exit tune(const TuneOptions& options) {
  check(options);
  return Tuning(options).run();
}

class Tune final : public Command {
 public:
  [[nodiscard]] std::string_view summary() const override { return "Find the plan that trains fastest, cheapest or in least memory"; }
  [[nodiscard]] std::string_view examples() const override {
    return "Examples:\n"
           "  rehearse tune llama2-70b-1024-a100\n"
           "  rehearse tune job.yaml --space parallel.tp=1,2,4,8 --space batch.micro=1,2 --goal step,memory\n"
           "  rehearse tune job.yaml --space gpus=256,512,1024 --goal cost --price 2.50\n"
           "  rehearse tune job.yaml --shard 3/8 -o out; rehearse tune job.yaml --merge out -o out\n";
  }
  [[nodiscard]] Action declare(CLI::App& app) const override {
    auto options = std::make_shared<TuneOptions>();
    options->job = JobOptions::declare(app);
    app.add_option("--space", options->space, "Values to try of a key of the job; may be given several times")
        ->type_name("KEY=V,V,...")
        ->allow_extra_args(false);
    app.add_option("--goal", options->goal, "What is to be best: step, time, cost, memory, ...; of several, the Pareto front")
        ->type_name("GOAL,...");
    app.add_option("--keep", options->keep, "Report the best so many plans")->type_name("N");
    app.add_option("--confirm", options->confirm, "Simulate so many of them; 0: none")->type_name("N");
    app.add_option("--price", options->price, "Of a GPU for an hour, for --goal cost")->type_name("X");
    app.add_option("--memory", options->memory, "Share of a GPU's memory that a plan may need, e.g. 0.95")->type_name("SHARE");
    app.add_option("--fits", options->fits, "Plans that surely fit (default), or likely: by the formula alone, without a margin")
        ->type_name("surely|likely");
    app.add_option("--jobs", options->jobs, "Threads; default: as many as there are processors")->type_name("N");
    app.add_flag("--exhaustive", options->exhaustive, "Evaluate every plan, also those that cannot be among the best");
    app.add_flag("--all", options->all, "Write every plan that was evaluated into tune.csv, not only the best");
    app.add_option("--shard", options->shard, "Search part K of N and keep what it finds in the folder of -o")->type_name("K/N");
    app.add_option("--merge", options->merge, "Put together the parts in this folder")->type_name("DIR");
    app.add_option("--resume", options->resume, "Go on with the search that was ended in this folder")->type_name("DIR");
    return [options] { return tune(*options); };
  }
};

const CommandRegistry::Registration<Tune> tune_registration("tune");

}  // namespace
}  // namespace rehearse::cli
