#include "sim/tune/candidate.hpp"

#include <algorithm>
#include <compare>
#include <limits>

#include "sim/tune/space.hpp"

namespace rehearse::sim {
namespace {

// By all goals from the first on: what dominates a plan stands before it.
struct InFront {
  std::size_t goals;
  bool operator()(const Candidate& one, const Candidate& other) const;
};

// The order of equally good plans, but for their places in the space.
std::weak_ordering by_size(const Candidate& one, const Candidate& other) {
  if (one.layout[0] != other.layout[0]) return one.layout[0] <=> other.layout[0];
  const double needed = rounded(one.needed_bytes), other_needed = rounded(other.needed_bytes);
  if (needed != other_needed) return needed < other_needed ? std::weak_ordering::less : std::weak_ordering::greater;
  return one.layout <=> other.layout;
}
bool decides(const Candidate& one, const Candidate& other) {
  const std::weak_ordering order = by_size(one, other);
  return order != 0 ? order < 0 : one.point < other.point;
}

// better(), but for the places in the space.
bool better_by_worth(const Candidate& one, const Candidate& other) {
  const double value = rounded(one.goals[0]), other_value = rounded(other.goals[0]);
  return value != other_value ? value < other_value : by_size(one, other) < 0;
}

bool InFront::operator()(const Candidate& one, const Candidate& other) const {
  for (std::size_t i = 0; i < goals; ++i) {
    const double value = rounded(one.goals[i]), other_value = rounded(other.goals[i]);
    if (value != other_value) return value < other_value;
  }
  return decides(one, other);
}

}  // namespace

std::string_view name_of(Fit fit) {
  constexpr std::array<std::string_view, 3> names{"fits", "may run out", "does not fit"};
  return names[static_cast<std::size_t>(fit)];
}

std::array<int, 7> layout_of(const workloads::Workload& workload, int gpus) {
  const workloads::Parallel& p = workload.parallel;
  return {gpus, p.tp, p.cp, p.pp, p.vpp, p.ep, -workload.batch.micro};
}

bool better(const Candidate& one, const Candidate& other) {
  const double value = rounded(one.goals[0]), other_value = rounded(other.goals[0]);
  return value != other_value ? value < other_value : decides(one, other);
}

bool dominates(const Candidate& one, const Candidate& other, std::size_t goals) {
  bool less = false;
  for (std::size_t i = 0; i < goals; ++i) {
    const double value = rounded(one.goals[i]), other_value = rounded(other.goals[i]);
    if (value > other_value) return false;
    less = less || value < other_value;
  }
  return less || decides(one, other);
}

bool are_twins(const Candidate& one, const Candidate& other) {
  const auto same = [](double a, double b) { return rounded(a) == rounded(b); };
  return one.layout == other.layout && one.dp == other.dp && std::ranges::equal(one.goals, other.goals, same) &&
         same(one.step_s, other.step_s) && same(one.needed_bytes, other.needed_bytes) && same(one.peak_bytes, other.peak_bytes);
}

std::uint64_t BestList::axes_apart(std::uint64_t one, std::uint64_t other) const {
  std::uint64_t apart = 0, bit = 1;
  for (std::size_t axis = 0; axis < space_->axes().size(); ++axis) {
    if (space_->axes()[axis].values.size() < 2) continue;
    if (space_->digit(one, axis) != space_->digit(other, axis)) apart |= bit;
    bit <<= 1U;
  }
  return apart;
}

void BestList::add(const Candidate& candidate) {
  if (all_.size() == most_ && better_by_worth(all_.back(), candidate)) return;
  const auto [first, end] = std::equal_range(all_.begin(), all_.end(), candidate, better_by_worth);
  const auto twin = std::find_if(first, end, [&](const Candidate& one) { return are_twins(one, candidate); });
  if (twin != end) {
    Candidate both = candidate.point < twin->point ? candidate : *twin;
    both.free_axes = twin->free_axes | candidate.free_axes | axes_apart(twin->point, candidate.point);
    both.twins = twin->twins + candidate.twins + 1;
    all_.erase(twin);
    all_.insert(std::upper_bound(all_.begin(), all_.end(), both, better), both);
    return;
  }
  if (all_.size() == most_ && !better(candidate, all_.back())) return;
  all_.insert(std::upper_bound(all_.begin(), all_.end(), candidate, better), candidate);
  if (all_.size() > most_) all_.pop_back();
}

double BestList::worst() const { return all_.size() < most_ ? std::numeric_limits<double>::infinity() : all_.back().goals[0]; }

void Front::add(const Candidate& candidate) {
  const auto place = std::upper_bound(all_.begin(), all_.end(), candidate, InFront{goals_});
  if (std::any_of(all_.begin(), place, [&](const Candidate& one) { return dominates(one, candidate, goals_); })) return;
  const auto at = all_.insert(place, candidate);
  all_.erase(std::remove_if(at + 1, all_.end(), [&](const Candidate& one) { return dominates(candidate, one, goals_); }), all_.end());
}

bool beats(const Candidate& one, const GoalArray& values, std::size_t goals) {
  bool less = false;
  for (std::size_t i = 0; i < goals; ++i) {
    if (rounded(one.goals[i]) > rounded(values[i])) return false;
    less = less || rounded(one.goals[i]) < rounded(values[i]);
  }
  return less;
}

bool Front::beats(const GoalArray& values) const {
  return std::ranges::any_of(all_, [&](const Candidate& one) { return sim::beats(one, values, goals_); });
}

}  // namespace rehearse::sim
