#include "sim/tune/search.hpp"

#include <algorithm>
#include <cmath>
#include <mutex>

#include "config/threads.hpp"
#include "sim/memory/ranks_at_rest.hpp"
#include "sim/tune/scout.hpp"
#include "sim/tune/worker.hpp"

namespace rehearse::sim {
namespace {

constexpr std::uint64_t largest_block = 4096, fewest_blocks = 64;
constexpr double sums_differ = 1e-9;  // by the order in which they are added up, at most; relative

// Not more than the value, whatever the order of its sums.
double not_above(double value) { return value - sums_differ * std::abs(value); }

// A block ends where the outer digits change.
std::uint64_t block_size(const Space& space) {
  const std::uint64_t most = std::clamp<std::uint64_t>(space.size() / fewest_blocks, 1, largest_block);
  std::size_t axis = space.base_axes();
  while (axis < space.axes().size() && space.points_below(axis) > most) ++axis;
  return space.points_below(axis);
}

// Where the rows of points that differ in the micro-batch alone begin to overflow.
class Rows {
 public:
  explicit Rows(const Space& space) : space_(space) {
    const auto micro = std::ranges::find(space.axes(), "batch.micro", &Axis::key);
    if (micro == space.axes().end()) return;
    axis_ = static_cast<std::size_t>(micro - space.axes().begin());
    std::vector<int> values;
    for (const Axis::Value& value : micro->values) values.push_back(value.read->batch.micro);
    useful_ = micro->values.front().followers.empty() && std::ranges::is_sorted(values);
    smallest_.assign(useful_ ? space.points_below(axis_ + 1) : 0, 0);
  }

  // Whether a smaller micro-batch did not fit.
  [[nodiscard]] bool overflows(const Cursor& cursor) {
    if (!useful_ || !needs_no_less_than_smaller(cursor.workload())) return false;
    begin(cursor.point());
    const int smallest = smallest_[place(cursor.point())];
    return smallest > 0 && cursor.workload().batch.micro > smallest;
  }
  void did_not_fit(const Cursor& cursor) {
    if (!useful_) return;
    begin(cursor.point());
    int& smallest = smallest_[place(cursor.point())];
    if (smallest == 0) smallest = cursor.workload().batch.micro;
  }

 private:
  [[nodiscard]] std::size_t place(std::uint64_t point) const { return point % space_.points_below(axis_ + 1); }
  void begin(std::uint64_t point) {
    const std::uint64_t row = point / space_.points_below(axis_);
    if (row == row_) return;
    row_ = row;
    std::ranges::fill(smallest_, 0);
  }

  const Space& space_;
  std::size_t axis_ = 0;
  bool useful_ = false;
  std::uint64_t row_ = std::numeric_limits<std::uint64_t>::max();
  std::vector<int> smallest_;  // [place in the row's points of one micro-batch] that did not fit; 0: none
};

class Block {
 public:
  Block(const Search& search, const Space& space, const TuneSpec& spec, Base& base, Found& found)
      : search_(search), space_(space), spec_(spec), base_(base), found_(found), rows_(space) {}

  // Whether it came to the end.
  bool search(std::uint64_t first, std::uint64_t end, const std::atomic<bool>& stop, std::atomic<std::uint64_t>& points) {
    Cursor cursor(space_, base_.job, first, end);
    while (!cursor.at_end()) {
      if (stop) return false;
      const std::uint64_t before = found_.points;
      if (const auto refused = cursor.refused()) {
        found_.refuse(refused->which, cursor.point(), refused->points);
        found_.points += refused->points;
      } else {
        decide(cursor);
        ++found_.points;
      }
      points += found_.points - before;
      cursor.advance(found_.points - before);
    }
    return true;
  }

 private:
  void decide(const Cursor& cursor) {
    if (const auto cut = cut_of(cursor)) {
      ++found_.cut[static_cast<std::size_t>(*cut)];
      return;
    }
    const Worth worth = base_.worth(cursor, search_.goals(), spec_.memory);
    if (worth.too_long) return found_.refuse(Refusals::length(), cursor.point());
    ++found_.evaluated;
    if (worth.fits()) return found_.add(space_, worth.candidate);
    found_.add_unfit(worth.candidate, worth.fit);
    if (search_.bounds().by_row && worth.candidate.lacks_bytes > 0) rows_.did_not_fit(cursor);
  }

  [[nodiscard]] std::optional<Cut> cut_of(const Cursor& cursor) {
    const Bounds& bounds = search_.bounds();
    if (bounds.by_row && rows_.overflows(cursor)) return Cut::row;
    const bool memory_counts = bounds.by_floor && std::ranges::find(search_.goals().goals(), Goal::memory) != search_.goals().goals().end();
    const double needed_bytes = bounds.by_memory || memory_counts ? base_.floors.needed_bytes(cursor.workload()) : 0;
    if (bounds.by_memory && overflows(not_above(needed_bytes))) return Cut::memory;
    if (bounds.by_floor && search_.threshold().found && too_bad(cursor, memory_counts ? needed_bytes : 0)) return Cut::floor;
    return std::nullopt;
  }

  // Where nothing is known to fit, the plan that comes nearest is asked for: only what lacks more than another is left out.
  [[nodiscard]] bool overflows(double needed_bytes) const {
    const double lacks = needed_bytes - base_.most_bytes(spec_.memory);
    if (lacks <= 0) return false;
    return search_.threshold().found || (found_.nearest && found_.nearest->lacks_bytes < lacks);
  }

  // Neither among the best, nor on the front, nor the best that has one of its values, or two.
  [[nodiscard]] bool too_bad(const Cursor& cursor, double needed_bytes) {
    GoalArray least = search_.goals().at_least(cursor.job(), base_.floors.step_s(cursor.workload()), needed_bytes);
    for (double& value : least) value = not_above(value);
    const Threshold& threshold = search_.threshold();
    if (least[0] <= std::min(threshold.kept, found_.best.worst())) return false;
    if (search_.goals().count() > 1 && !found_.front.beats(least) && !beaten_by(threshold.front, least)) return false;
    if (least[0] > threshold.of_value()) return true;
    for (std::size_t axis = 0; axis < space_.axes().size(); ++axis) {
      const std::optional<Candidate>& known = found_.of_value[axis][space_.digit(cursor.point(), axis)];
      if (!known || least[0] <= known->goals[0]) return false;
    }
    return found_.pairs.all_below(space_, cursor.point(), least[0]);
  }

  [[nodiscard]] bool beaten_by(const std::vector<Candidate>& front, const GoalArray& values) const {
    const std::size_t goals = search_.goals().count();
    return std::ranges::any_of(front, [&](const Candidate& one) { return beats(one, values, goals); });
  }

  const Search& search_;
  const Space& space_;
  const TuneSpec& spec_;
  Base& base_;
  Found& found_;
  Rows rows_;
};

}  // namespace

double Threshold::of_value() const { return best + std::abs(best) / 4; }

Search::Search(const Space& space, const TuneSpec& spec, const Bounds& bounds, bool every, const std::atomic<bool>* stop)
    : space_(space), spec_(spec), bounds_(bounds), goals_(spec, space.base_of(0)), block_points_(block_size(space)), every_(every) {
  if (spec.fits == Fits::surely) errors_.emplace();
  if (space.size() >= bounds.look_from) threshold_ = scouted(space, spec, goals_, errors(), stop);
}

void Search::run(int threads, const std::function<bool(std::uint64_t)>& mine, const std::function<void(std::uint64_t, const Found&)>& done,
                 const std::atomic<bool>& stop, std::atomic<std::uint64_t>& points) const {
  std::atomic<std::uint64_t> next = 0;
  std::atomic<bool> failed = false;
  std::mutex one_at_a_time;
  const auto work = [&] {
    Bases bases(space_, 2, errors());  // blocks come in the order of their bases
    for (std::uint64_t block = next++; block < blocks() && !stop && !failed; block = next++) {
      if (!mine(block)) continue;
      const std::uint64_t first = block * block_points_, end = std::min(space_.size(), first + block_points_);
      Found found = nothing();
      if (!Block(*this, space_, spec_, bases.of(first), found).search(first, end, stop, points)) return;
      const std::scoped_lock lock(one_at_a_time);
      done(block, found);
    }
  };
  const auto guarded = [&] {
    try {
      work();
    } catch (...) {
      failed = true;
      throw;
    }
  };
  config::on_threads(static_cast<unsigned>(threads), guarded);
}

Found Search::run(int threads) const {
  Found all = nothing();
  const std::atomic<bool> stop = false;
  std::atomic<std::uint64_t> points = 0;
  run(
      threads, [](std::uint64_t) { return true; }, [&](std::uint64_t, const Found& found) { all.merge(found); }, stop, points);
  return all;
}

}  // namespace rehearse::sim
