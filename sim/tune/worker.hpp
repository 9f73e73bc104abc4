// What one thread of a search has of its own: jobs, evaluators and floors, which remember what they worked out.
#pragma once

#include <map>
#include <memory>
#include <optional>

#include "sim/analytic/evaluator.hpp"
#include "sim/report/expected_band.hpp"
#include "sim/tune/cursor.hpp"
#include "sim/tune/floors.hpp"
#include "sim/tune/goal_values.hpp"

namespace rehearse::sim {

// A plan's worth, or that it does not fit, or that its whole job takes too long.
struct Worth {
  Candidate candidate;
  Fit fit = Fit::no;
  bool too_long = false;
  [[nodiscard]] bool fits() const { return fit == Fit::yes; }
};

class Base {
 public:
  // errors: of which a plan's memory keeps clear; null: of none.
  Base(const Space& space, std::uint64_t point, const MeasuredErrors* errors)
      : job(space.base_of(point)), floors(job), margin_(errors != nullptr ? errors->most_need(job).factor : 1) {}
  Base(const Base&) = delete;
  Base& operator=(const Base&) = delete;

  [[nodiscard]] Worth worth(const Cursor& cursor, const GoalValues& goals, double memory_share);
  // What a plan may need of a GPU of which it may have this share.
  [[nodiscard]] double most_bytes(double memory_share) const;

  const Job job;
  Floors floors;

 private:
  [[nodiscard]] Evaluator& evaluator();

  // What evaluations have in common grows with every plan and every pipeline that differs: it is forgotten now and then.
  std::unique_ptr<Evaluator> evaluator_;
  int evaluations_ = 0;
  double margin_;
};

// The bases that a thread has seen, by number; all of them are forgotten when there are more.
class Bases {
 public:
  Bases(const Space& space, std::size_t most, const MeasuredErrors* errors = nullptr) : space_(space), most_(most), errors_(errors) {}
  [[nodiscard]] Base& of(std::uint64_t point);

 private:
  const Space& space_;
  std::size_t most_;
  const MeasuredErrors* errors_;
  std::map<std::uint64_t, std::unique_ptr<Base>> known_;
};

}  // namespace rehearse::sim
