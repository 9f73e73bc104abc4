#include "sim/tune/scout.hpp"

#include <algorithm>
#include <set>

#include "config/random.hpp"
#include "sim/tune/worker.hpp"

namespace rehearse::sim {
namespace {

constexpr int most_tried = 20'000, most_samples = 300, most_evaluations = 6'000;
constexpr std::size_t starts = 3, most_bases = 64;  // a job is some hundred kilobytes

class Scout {
 public:
  Scout(const Space& space, const TuneSpec& spec, const GoalValues& goals, const MeasuredErrors* errors, const std::atomic<bool>* stop)
      : space_(space),
        spec_(spec),
        goals_(goals),
        stop_(stop),
        bases_(space, most_bases, errors),
        best_(static_cast<std::size_t>(spec.keep), space),
        front_(goals.count()) {}

  Threshold look() {
    sample();
    const std::size_t first = std::min(starts, order_.size());
    std::partial_sort(order_.begin(), order_.begin() + static_cast<std::ptrdiff_t>(first), order_.end(), before);
    std::vector<Worth> from(order_.begin(), order_.begin() + static_cast<std::ptrdiff_t>(first));
    for (Worth& start : from) descend(start);
    if (!from.empty()) change_two(*std::ranges::min_element(from, before));
    Threshold threshold;
    threshold.found = !best_.all().empty();
    if (threshold.found) threshold.best = best_.all().front().goals[0];
    threshold.kept = best_.worst();
    threshold.front = front_.all();
    return threshold;
  }

 private:
  // What fits before what does not.
  static bool before(const Worth& one, const Worth& other) {
    if (one.fits() != other.fits()) return one.fits();
    if (one.fits()) return better(one.candidate, other.candidate);
    if (one.candidate.lacks_bytes != other.candidate.lacks_bytes) return one.candidate.lacks_bytes < other.candidate.lacks_bytes;
    return one.candidate.point < other.candidate.point;
  }

  std::optional<Worth> at(std::uint64_t point) {
    if (evaluations_ >= most_evaluations || (stop_ != nullptr && *stop_) || !seen_.insert(point).second) return std::nullopt;
    Base& base = bases_.of(point);
    const Cursor cursor(space_, base.job, point, point + 1);
    if (cursor.refused()) return std::nullopt;
    ++evaluations_;
    const Worth worth = base.worth(cursor, goals_, spec_.memory);
    if (worth.too_long) return std::nullopt;
    if (worth.fits()) {
      best_.add(worth.candidate);
      front_.add(worth.candidate);
    }
    return worth;
  }

  void sample() {
    config::Random random(1);
    for (int i = 0; i < most_tried && order_.size() < most_samples; ++i) {
      if (const auto worth = at(random.next() % space_.size())) order_.push_back(*worth);
    }
  }

  [[nodiscard]] std::uint64_t with(std::uint64_t point, std::size_t axis, std::size_t value) const {
    return point + (value - space_.digit(point, axis)) * space_.points_below(axis + 1);
  }

  void descend(Worth& from) {
    for (bool moved = true; moved;) {
      moved = false;
      const std::uint64_t here = from.candidate.point;
      for (std::size_t axis = 0; axis < space_.axes().size(); ++axis) {
        for (std::size_t value = 0; value < space_.axes()[axis].values.size(); ++value)
          moved = take(from, with(here, axis, value)) || moved;
      }
    }
  }

  void change_two(Worth from) {
    for (bool moved = true; moved;) {
      moved = false;
      const std::uint64_t here = from.candidate.point;
      const std::size_t axes = space_.axes().size();
      for (std::size_t one = 0; one < axes; ++one) {
        for (std::size_t two = one + 1; two < axes; ++two) {
          for (std::size_t i = 0; i < space_.axes()[one].values.size(); ++i) {
            for (std::size_t j = 0; j < space_.axes()[two].values.size(); ++j)
              moved = take(from, with(with(here, one, i), two, j)) || moved;
          }
        }
      }
    }
  }

  bool take(Worth& from, std::uint64_t point) {
    const auto worth = at(point);
    if (!worth || !before(*worth, from)) return false;
    from = *worth;
    return true;
  }

  const Space& space_;
  const TuneSpec& spec_;
  const GoalValues& goals_;
  const std::atomic<bool>* stop_;
  Bases bases_;
  BestList best_;
  Front front_;
  std::vector<Worth> order_;
  std::set<std::uint64_t> seen_;
  int evaluations_ = 0;
};

}  // namespace

Threshold scouted(const Space& space, const TuneSpec& spec, const GoalValues& goals, const MeasuredErrors* errors,
                  const std::atomic<bool>* stop) {
  return Scout(space, spec, goals, errors, stop).look();
}

}  // namespace rehearse::sim
