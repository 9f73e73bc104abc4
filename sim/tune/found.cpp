#include "sim/tune/found.hpp"

#include <algorithm>
#include <array>

namespace rehearse::sim {
namespace {

bool nearer(const Candidate& one, const Candidate& other) {
  return one.lacks_bytes != other.lacks_bytes ? one.lacks_bytes < other.lacks_bytes : one.point < other.point;
}

}  // namespace

std::string Refusals::key(std::size_t which) {
  if (which == product) return "parallel";
  if (which == multiple) return "gpus";
  if (which == counts()) return "moe.routing";
  if (which == length()) return "training";
  return std::string(all_rules()[which - 2].path);
}

std::string_view name_of(Cut cut) {
  constexpr std::array names{"weights and optimizer states alone are too much", "a smaller micro-batch was too much",
                             "computation alone takes too long"};
  return names[static_cast<std::size_t>(cut)];
}

Found::Found(const Space& space, std::size_t keep, std::size_t goals, bool keep_every)
    : refused(Refusals::number(), 0),
      first_refused(Refusals::number(), 0),
      best(keep, space),
      front(goals),
      pairs(space),
      keeps_every(keep_every) {
  for (const Axis& axis : space.axes()) of_value.emplace_back(axis.values.size());
}

void Found::refuse(std::size_t which, std::uint64_t point, std::uint64_t count) {
  if (refused[which] == 0 || point < first_refused[which]) first_refused[which] = point;
  refused[which] += count;
}

void Found::add(const Space& space, const Candidate& candidate) {
  if (keeps_every) every.push_back({candidate, Fit::yes});
  best.add(candidate);
  front.add(candidate);
  pairs.add(space, candidate.point, candidate.goals[0]);
  for (std::size_t axis = 0; axis < of_value.size(); ++axis) {
    std::optional<Candidate>& known = of_value[axis][space.digit(candidate.point, axis)];
    if (!known || better(candidate, *known)) known = candidate;
  }
}

void Found::add_unfit(const Candidate& candidate, Fit fit) {
  ++unfit;
  if (fit == Fit::may_run_out) ++may_run_out;
  if (keeps_every) every.push_back({candidate, fit});
  if (!nearest || nearer(candidate, *nearest)) nearest = candidate;
}

void Found::merge(const Found& other) {
  points += other.points;
  evaluated += other.evaluated;
  unfit += other.unfit;
  may_run_out += other.may_run_out;
  for (std::size_t i = 0; i < refused.size(); ++i) {
    if (other.refused[i] > 0) refuse(i, other.first_refused[i], other.refused[i]);
  }
  for (std::size_t i = 0; i < cut_count; ++i) cut[i] += other.cut[i];
  for (const Candidate& candidate : other.best.all()) best.add(candidate);
  for (const Candidate& candidate : other.front.all()) front.add(candidate);
  pairs.merge(other.pairs);
  every.insert(every.end(), other.every.begin(), other.every.end());
  for (std::size_t axis = 0; axis < of_value.size(); ++axis) {
    for (std::size_t i = 0; i < of_value[axis].size(); ++i) {
      const std::optional<Candidate>& theirs = other.of_value[axis][i];
      if (theirs && (!of_value[axis][i] || better(*theirs, *of_value[axis][i]))) of_value[axis][i] = theirs;
    }
  }
  if (other.nearest && (!nearest || nearer(*other.nearest, *nearest))) nearest = other.nearest;
}

}  // namespace rehearse::sim
