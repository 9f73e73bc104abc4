// A plan that was evaluated, and when one is better than another.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "sim/tune/goal_values.hpp"
#include "workloads/plan.hpp"

namespace rehearse::sim {

class Space;

// Whether a plan's memory suffices; may_run_out: by the formula, but not where it needs the most that measured runs needed beyond it.
enum class Fit : std::uint8_t { yes, may_run_out, no };
[[nodiscard]] std::string_view name_of(Fit fit);

struct Candidate {
  std::uint64_t point = 0;
  GoalArray goals{};
  double step_s = 0;
  double peak_bytes = 0, needed_bytes = 0;  // of the fullest GPU: tensors and framework; with what the allocator keeps
  double lacks_bytes = 0;                   // of a GPU's memory; 0 of a plan that fits, and where only the host's memory is too small
  // What decides between plans that are equally good, all to be small: GPUs, tp, cp, pp, vpp, ep, and the negative micro-batch.
  std::array<int, 7> layout{};
  int dp = 1;
  // Of one of the best: how many other plans are its twins, and in which axes any of them has another value: bit i is of the i-th axis with
  // several values.
  std::uint64_t twins = 0, free_axes = 0;
};

[[nodiscard]] std::array<int, 7> layout_of(const workloads::Workload& workload, int gpus);

// The smaller first goal; of equals (rounded()) fewer GPUs, less memory needed, then the layout, then the order of the space. Total.
[[nodiscard]] bool better(const Candidate& one, const Candidate& other);

// No worse in any of the first `goals` goals and better in one, or equal in all and better() by what decides then.
[[nodiscard]] bool dominates(const Candidate& one, const Candidate& other, std::size_t goals);

// Better in one goal than whatever is no better than these values, and no worse in the others.
[[nodiscard]] bool beats(const Candidate& one, const GoalArray& values, std::size_t goals);

// Whether nothing tells them apart but keys without effect: all goals, the step, the memory and the layout are the same (rounded()).
[[nodiscard]] bool are_twins(const Candidate& one, const Candidate& other);

// The best so many, best first. Of twins the first in the order of the space stands for all.
class BestList {
 public:
  // `space` must outlive it.
  BestList(std::size_t most, const Space& space) : most_(most), space_(&space) {}
  void add(const Candidate& candidate);
  [[nodiscard]] const std::vector<Candidate>& all() const { return all_; }
  // What a plan must not exceed in the first goal to be among them; infinite while there is room.
  [[nodiscard]] double worst() const;

 private:
  [[nodiscard]] std::uint64_t axes_apart(std::uint64_t one, std::uint64_t other) const;

  std::size_t most_;
  const Space* space_;
  std::vector<Candidate> all_;
};

// Plans that no other dominates: by the first goal from the best on, then by the others.
class Front {
 public:
  explicit Front(std::size_t goals) : goals_(goals) {}
  void add(const Candidate& candidate);
  // Whether one of it does.
  [[nodiscard]] bool beats(const GoalArray& values) const;
  [[nodiscard]] const std::vector<Candidate>& all() const { return all_; }

 private:
  std::size_t goals_;
  std::vector<Candidate> all_;
};

}  // namespace rehearse::sim
