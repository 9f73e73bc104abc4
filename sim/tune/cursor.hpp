// Walks through points of a space one after another: the plan of each, settled as reading a job settles it, and the rule that refuses it.
#pragma once

#include <cstdint>
#include <optional>

#include "sim/job/job.hpp"
#include "sim/tune/found.hpp"
#include "sim/tune/space.hpp"

namespace rehearse::sim {

class Cursor {
 public:
  // Points first to end, which have one base in common; `base` is its job.
  Cursor(const Space& space, const Job& base, std::uint64_t first, std::uint64_t end);

  [[nodiscard]] bool at_end() const { return point_ >= end_; }
  [[nodiscard]] std::uint64_t point() const { return point_; }
  [[nodiscard]] const Job& job() const { return job_; }  // with the plan of this point
  [[nodiscard]] const workloads::Workload& workload() const { return job_.workload; }

  // What refuses the point (Refusals); and for how many points from here on the same holds.
  struct Refused {
    std::size_t which = 0;
    std::uint64_t points = 1;
  };
  [[nodiscard]] std::optional<Refused> refused() const;

  void advance(std::uint64_t points = 1);

  // The plan of another point of the same base, from scratch.
  void jump(std::uint64_t point);

 private:
  void apply(std::size_t first_axis);
  void settle();

  const Space& space_;
  Job job_;
  workloads::Workload base_;
  std::uint64_t point_, end_;
  std::size_t decided_ = 0;  // axes that decide on tp*cp*pp, and dp
  bool product_ = true, multiple_ = true;
};

}  // namespace rehearse::sim
