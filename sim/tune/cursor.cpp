#include "sim/tune/cursor.hpp"

#include <algorithm>
#include <array>

#include "config/input_error.hpp"
#include "sim/job/checks.hpp"
#include "workloads/schedule.hpp"
#include "workloads/stage_program.hpp"

namespace rehearse::sim {

Cursor::Cursor(const Space& space, const Job& base, std::uint64_t first, std::uint64_t end)
    : space_(space), job_(base), base_(base.workload), point_(first), end_(end) {
  constexpr std::array deciding{"parallel.tp", "parallel.cp", "parallel.pp", "parallel.dp"};
  for (std::size_t i = 0; i < space_.axes().size(); ++i) {
    const Axis& axis = space_.axes()[i];
    const bool decides =
        std::ranges::any_of(axis.copies, [&](const PlanKey* key) { return std::ranges::find(deciding, key->path) != deciding.end(); });
    if (decides || !axis.of_plan()) decided_ = i + 1;
  }
  jump(first);
}

void Cursor::jump(std::uint64_t point) {
  point_ = point;
  job_.workload = base_;
  if (point < space_.size()) apply(space_.base_axes());
}

void Cursor::advance(std::uint64_t points) {
  const std::uint64_t before = point_;
  point_ += points;
  if (at_end()) return;
  std::size_t axis = space_.base_axes();
  while (axis + 1 < space_.axes().size() && before / space_.points_below(axis + 1) == point_ / space_.points_below(axis + 1)) ++axis;
  apply(axis);
}

void Cursor::apply(std::size_t first_axis) {
  for (std::size_t i = first_axis; i < space_.axes().size(); ++i) {
    const Axis& axis = space_.axes()[i];
    for (const PlanKey* key : axis.copies) key->copy(*axis.values[space_.digit(point_, i)].read, job_.workload);
  }
  settle();
}

// As settle_gpus() and reading do.
void Cursor::settle() {
  workloads::Workload& w = job_.workload;
  workloads::Parallel& p = w.parallel;
  const Follows& follows = space_.follows();
  const double product = static_cast<double>(p.tp) * p.cp * p.pp * (follows.dp ? 1 : p.dp);
  product_ = follows.dp ? product <= job_.system.gpus : product == job_.system.gpus;
  multiple_ = !product_ || !follows.dp || job_.system.gpus % static_cast<int>(product) == 0;
  if (!product_ || !multiple_) return;
  if (follows.dp) p.dp = job_.system.gpus / static_cast<int>(product);
  if (follows.etp) p.etp = p.tp;
  if (follows.layers) {
    const std::vector<int>& stated = base_.parallel.layers_per_stage;
    if (stated.size() == static_cast<std::size_t>(p.pp) * static_cast<std::size_t>(p.vpp)) {
      p.layers_per_stage = stated;
    } else {
      p.layers_per_stage.clear();
    }
  }
  // The stack's habits, not the key's.
  w.recompute.stops_early = base_.recompute.stops_early;
  w.recompute.by_product = base_.recompute.by_product;
  if (follows.schedule) w.schedule = workloads::usual_schedule(p.vpp);
  if (follows.chunk_recompute) w.experts.chunk_recompute = w.experts.chunks != 1;
  if (follows.shard_group) w.optimizer.shard_group = workloads::replica_sync(w).ranks;
}

std::optional<Cursor::Refused> Cursor::refused() const {
  if (!product_ || !multiple_) {
    const std::uint64_t alike = space_.points_below(decided_);
    return Refused{product_ ? Refusals::multiple : Refusals::product, std::min(end_ - point_, alike - point_ % alike)};
  }
  if (const Rule* rule = broken_rule(job_.workload, job_.system)) return Refused{Refusals::rule(*rule)};
  if (job_.workload.experts.routing != "counts") return std::nullopt;
  try {
    check_counts(job_.given, job_.workload, job_.system.simulation.steps);
  } catch (const config::InputError&) {
    return Refused{Refusals::counts()};
  }
  return std::nullopt;
}

}  // namespace rehearse::sim
