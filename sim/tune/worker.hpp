// What one thread of a search has of its own: jobs, evaluators and floors, which remember what they worked out.
#pragma once

#include <map>
#include <memory>
#include <optional>

#include "sim/analytic/evaluator.hpp"
#include "sim/tune/cursor.hpp"
#include "sim/tune/floors.hpp"
#include "sim/tune/goal_values.hpp"

namespace rehearse::sim {

// A plan's worth, or that it does not fit, or that its whole job takes too long.
struct Worth {
  Candidate candidate;
  bool fits = false, too_long = false;
};

class Base {
 public:
  Base(const Space& space, std::uint64_t point) : job(space.base_of(point)), floors(job) {}
  Base(const Base&) = delete;
  Base& operator=(const Base&) = delete;

  [[nodiscard]] Worth worth(const Cursor& cursor, const GoalValues& goals, double memory_share);

  const Job job;
  Floors floors;

 private:
  [[nodiscard]] Evaluator& evaluator();

  // What evaluations have in common grows with every plan and every pipeline that differs: it is forgotten now and then.
  std::unique_ptr<Evaluator> evaluator_;
  int evaluations_ = 0;
};

// The bases that a thread has seen, by number; all of them are forgotten when there are more.
class Bases {
 public:
  Bases(const Space& space, std::size_t most) : space_(space), most_(most) {}
  [[nodiscard]] Base& of(std::uint64_t point);

 private:
  const Space& space_;
  std::size_t most_;
  std::map<std::uint64_t, std::unique_ptr<Base>> known_;
};

}  // namespace rehearse::sim
