// What `tune` found out, for the reporters.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "sim/result.hpp"
#include "sim/tune/found.hpp"
#include "sim/tune/search.hpp"

namespace rehearse::sim {

// What the simulation says of a plan.
struct Confirmation {
  double step_s = 0, peak_bytes = 0, needed_bytes = 0;  // of the timeline; 0 where it has no answer
  std::string refused;                                  // why there is none; else ""
  std::string shortage;                                 // what the timeline's memory lacks, as `simulate` says; "" where it fits
  int rank = 0;                                         // by the simulated step, from 1 on, of those that have one and fit; else 0
  [[nodiscard]] bool good() const { return refused.empty() && shortage.empty(); }
};

struct TunedPlan {
  Candidate candidate;
  Settings settings;  // what --set has to set to get it
  std::string text;   // in short: "tp 8 pp 4 dp 32 b 1 selective zero1"
  // Of the best plans alone.
  std::optional<StepResult> predicted;
  std::optional<Confirmation> confirmed;  // of those that were simulated
  double interval_steps = 0;              // K* of (44), where the training has a length; else 0
  std::vector<std::string> free_keys;     // in which its twins differ: without effect on it
  std::string held_back;                  // what its step is not spent computing on, the largest parts: "bubble 12 %, tp 6 %"
  std::optional<ChanceToFit> fits;        // how sure it is that memory suffices
};

struct RefusedPoints {
  std::string key;
  std::uint64_t points = 0;
  std::string example;  // what is said of the first of them
};

// How good the best plan is that has a value of a key. Without a goal: it is more than a quarter worse than the best plan, or none fits.
struct ValueOfKey {
  std::string value;
  std::optional<double> goal;
};
struct Sensitivity {
  std::string key;
  std::vector<ValueOfKey> values;
};

// The same of each pair of values of the two keys by which it differs most.
struct KeyMap {
  std::string row_key, column_key;
  std::vector<std::string> rows, columns;
  std::vector<std::vector<std::optional<double>>> goals;  // [row][column]
};

// A plan that was evaluated, and whether it fits.
using TakePlan = std::function<void(const TunedPlan&, Fit)>;

struct TuneReport {
  std::string hash;  // of the job, the space and what is searched for
  std::vector<Goal> goals;
  std::vector<Axis> axes;
  double memory_share = 1, within = 0;
  bool exhaustive = false;
  std::uint64_t points = 0, decided = 0;                    // fewer where the search was ended
  std::uint64_t evaluated = 0, unfit = 0, may_run_out = 0;  // may_run_out: of the unfit
  MostNeed most_need;                                       // that plans like the best keep clear of
  std::array<std::uint64_t, cut_count> cut{};
  std::vector<RefusedPoints> refused;
  std::vector<TunedPlan> best, front;  // front: of several goals
  std::optional<TunedPlan> nearest;    // where none fits
  std::vector<Sensitivity> sensitivity;
  std::optional<KeyMap> map;               // where two keys have several values
  std::vector<std::string> order_changes;  // where the simulation puts the best plans in another order: why
  std::string best_yaml;                   // the best plan as a job
  // Where every plan was asked for: calls with each that was evaluated, in the order of the space. The search and what it found must be
  // there.
  std::function<void(const TakePlan&)> each_evaluated;
};

// What is the same of every part of one search, as 16 hex digits.
[[nodiscard]] std::string search_hash(const Space& space, const TuneSpec& spec, const Search& search);

// Reads the jobs of the best plans and predicts them. Where all plans were asked for, `space` and `found` must outlive the report. `job`:
// becomes the best plan's, where there is one, or the nearest's.
[[nodiscard]] TuneReport report_of(const Space& space, const TuneSpec& spec, const Search& search, const Found& found,
                                   std::optional<Job>& job);

// Simulates the best `count` plans, so many at a time, each in a process of its own; the caller must have no other thread. A plan whose
// simulation throws or dies has that as its Confirmation::refused.
void confirm(const Space& space, TuneReport& report, int count, int processes, const std::function<void(double)>& progress);

// A plan in short.
[[nodiscard]] std::string plan_text(const workloads::Workload& workload);

}  // namespace rehearse::sim
