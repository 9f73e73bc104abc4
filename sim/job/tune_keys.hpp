// The `tune` section of a job: what may vary, and which plan is best (docs/tuning.md).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "config/keys.hpp"

namespace rehearse::sim {

// What is compared. All but the throughputs and mfu are to be small.
enum class Goal { step, tokens_per_s, tokens_per_s_per_gpu, mfu, time, cost, ettr, memory };
[[nodiscard]] const config::Names<Goal>& goals();

enum class Fits { surely, likely };

// A key that goes with another one: it has the other's value, or whether a condition on it holds ("parallel.tp > 1").
struct Together {
  std::string key, follows;
  config::Node where;  // for complaints
};

struct TuneSpec {
  std::vector<Goal> goals;         // none: time where the job has a length, else step
  config::Node goal;               // as the file has them, for complaints; absent where none is named
  config::Node space;              // as the file has it: a word, or keys with values; absent: `default`
  std::vector<Together> together;  // besides those of a space that a word names
  double memory = 1;               // share of a GPU's memory that a plan may need
  Fits fits = Fits::surely;        // what it needs: at most, by what was measured of like jobs, or by the formula alone
  std::optional<double> gpu_hour;  // price, in any currency
  int keep = 10;                   // the best so many are reported
  int confirm = 5;                 // of those, so many are simulated
  double within = 0.02;            // plans that differ by less count as equally good
};

[[nodiscard]] const config::Keys<TuneSpec>& tune_keys();

}  // namespace rehearse::sim
