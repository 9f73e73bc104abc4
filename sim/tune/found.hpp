// What a search has found in a part of a space. Parts can be put together in any order: the sum is the same.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "sim/job/rules/rule.hpp"
#include "sim/tune/candidate.hpp"
#include "sim/tune/pairs.hpp"
#include "sim/tune/space.hpp"

namespace rehearse::sim {

// Why a point is no plan: one of the rules of a job, or one of these, which come before and after them.
class Refusals {
 public:
  static constexpr std::size_t product = 0;   // tp*cp*pp*dp is not the number of GPUs
  static constexpr std::size_t multiple = 1;  // the GPUs are no multiple of tp*cp*pp
  static std::size_t rule(const Rule& rule) { return 2 + static_cast<std::size_t>(&rule - all_rules().data()); }
  static std::size_t counts() { return 2 + all_rules().size(); }  // routing: counts that name other layers or micro-batches
  static std::size_t length() { return counts() + 1; }            // the whole job takes longer than any may
  static std::size_t number() { return length() + 1; }
  [[nodiscard]] static std::string key(std::size_t which);  // the key that is refused
};

// Why a point was left out though it is a plan.
enum class Cut : std::uint8_t { memory, row, floor, count };
inline constexpr std::size_t cut_count = static_cast<std::size_t>(Cut::count);
[[nodiscard]] std::string_view name_of(Cut cut);

struct Evaluated {
  Candidate candidate;  // without goals where it does not fit
  Fit fit = Fit::yes;
};

struct Found {
  // `keep_every`: all plans that were evaluated are kept, not only the best.
  Found(const Space& space, std::size_t keep, std::size_t goals, bool keep_every = false);

  std::uint64_t points = 0, evaluated = 0, unfit = 0, may_run_out = 0;  // may_run_out: of the unfit
  std::vector<std::uint64_t> refused;                                   // [Refusals]
  std::vector<std::uint64_t> first_refused;                             // [Refusals] the first such point; none where refused is 0
  std::array<std::uint64_t, cut_count> cut{};
  BestList best;
  Front front;
  std::vector<std::vector<std::optional<Candidate>>> of_value;  // [axis][value] the best plan that has it
  Pairs pairs;
  std::optional<Candidate> nearest;  // of those that do not fit, the one that lacks least

  bool keeps_every = false;
  std::vector<Evaluated> every = {};  // in any order

  void refuse(std::size_t which, std::uint64_t point, std::uint64_t count = 1);
  // A plan that fits.
  void add(const Space& space, const Candidate& candidate);
  void add_unfit(const Candidate& candidate, Fit fit);
  void merge(const Found& other);
};

}  // namespace rehearse::sim
