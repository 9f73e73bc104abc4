#include "sim/wholejob/training.hpp"

#include <algorithm>
#include <cmath>

namespace rehearse::sim {
namespace {

__extension__ using Wide = __int128;  // products of two times

Ns stretched(Ns step, double slowdown) { return std::max(step, static_cast<Ns>(std::llround(static_cast<double>(step) * slowdown))); }

}  // namespace

Training::Training(const TrainingPlan& plan)
    : plan_(plan), step_(plan.nominal_step), writing_step_(stretched(plan.nominal_step, plan.writing_slowdown)) {}

bool Training::finished() const { return now_.steps == plan_.steps && saved_.steps == plan_.steps; }

Ns Training::step_now() const { return background_left_ > 0 ? writing_step_ : step_; }

// At a step boundary, every `interval` steps and after the last one.
bool Training::save_due() const {
  if (step_left_ > 0 || now_.steps == 0 || now_.steps == saved_.steps || (saving_ && now_.steps == being_saved_.steps)) return false;
  return now_.steps % plan_.interval == 0 || now_.steps == plan_.steps;
}

Ns Training::advance(Ns time) {
  Ns used = 0;
  paused_ = false;
  while (used < time && !finished() && !paused_) used += saving_ && blocking_left_ > 0 ? block(time - used) : train(time - used);
  return used;
}

std::optional<Training::Step> Training::step_under_way() const {
  const bool stands_still = (saving_ && blocking_left_ > 0) || save_due() || now_.steps == plan_.steps;
  if (stands_still) return std::nullopt;
  const Ns all = step_now();
  return Step{step_left_ == 0 ? 0 : 1 - static_cast<double>(step_left_) / static_cast<double>(all), step_spent_, all};
}

void Training::start_save() {
  saving_ = true;
  being_saved_ = now_;
  with_backup_ = plan_.backup_every > 0 && (now_.steps % plan_.backup_every == 0 || now_.steps == plan_.steps);
  blocking_left_ = plan_.save.blocking + (with_backup_ ? plan_.backup_save.blocking : 0);
  background_left_ = 0;
  blocked_ = 0;
  if (blocking_left_ > 0) return;
  background_left_ = plan_.save.background + (with_backup_ ? plan_.backup_save.background : 0);
  if (background_left_ == 0) complete_save();
}

void Training::complete_save() {
  saved_ = being_saved_;
  if (with_backup_) backed_up_ = being_saved_;
  saving_booked_ += blocked_;
  blocked_ = 0;
  saving_ = false;
  ++saves_;
  paused_ = pause_after_save_;
}

// Training stands still. The background part of the write begins afterwards.
Ns Training::block(Ns time) {
  const Ns used = std::min(time, blocking_left_);
  blocking_left_ -= used;
  blocked_ += used;
  if (blocking_left_ > 0) return used;
  background_left_ = plan_.save.background + (with_backup_ ? plan_.backup_save.background : 0);
  if (background_left_ == 0) complete_save();
  return used;
}

Ns Training::train(Ns time) {
  if (save_due()) {
    if (saving_) {  // the last checkpoint is still being written: wait for it
      const Ns used = std::min(time, background_left_);
      blocked_ += used;
      pass_background(used);
      return used;
    }
    start_save();
    return 0;
  }
  if (now_.steps == plan_.steps) {  // only the background write is left
    const Ns used = std::min(time, background_left_);
    blocked_ += used;
    pass_background(used);
    return used;
  }
  const Ns until_change = background_left_ > 0 ? std::min(time, background_left_) : time;
  return step_left_ == 0 && until_change >= step_now() ? whole_steps(until_change) : part_of_step(until_change);
}

// As many whole steps as fit into `time` and before the next checkpoint, at once.
Ns Training::whole_steps(Ns time) {
  const Ns step = step_now();
  const std::int64_t to_save = plan_.interval - now_.steps % plan_.interval;
  const std::int64_t steps = std::min({time / step, to_save, plan_.steps - now_.steps});
  now_.steps += steps;
  now_.trained += steps * plan_.nominal_step;
  now_.degraded += steps * (step - plan_.nominal_step);
  pass_background(steps * step);
  return steps * step;
}

Ns Training::part_of_step(Ns time) {
  if (step_left_ == 0) step_left_ = step_now();
  const Ns used = std::min(time, step_left_);
  step_left_ -= used;
  step_spent_ += used;
  if (step_left_ == 0) {
    ++now_.steps;
    now_.trained += plan_.nominal_step;
    now_.degraded += step_spent_ - plan_.nominal_step;
    step_spent_ = 0;
  }
  pass_background(used);
  return used;
}

void Training::pass_background(Ns time) {
  if (background_left_ == 0) return;
  background_left_ -= time;
  if (background_left_ > 0) return;
  rescale(writing_step_, step_);
  complete_save();
}

// Rounds up: a step is never shorter than its share of the nominal one, so that what it takes longer is never negative.
void Training::rescale(Ns from, Ns to) {
  if (step_left_ == 0 || from == to) return;
  const Wide scaled = static_cast<Wide>(step_left_) * to;
  step_left_ = static_cast<Ns>((scaled + from - 1) / from);
}

void Training::set_step(Ns step) {
  const Ns before = step_now();
  step_ = std::max(step, plan_.nominal_step);
  writing_step_ = stretched(step_, plan_.writing_slowdown);
  rescale(before, step_now());
}

void Training::roll_back(Tier survivor) {
  const Progress& to = survivor == Tier::main ? saved_ : backed_up_;
  rollback_booked_ += now_.trained + now_.degraded - to.trained - to.degraded + step_spent_ + blocked_;
  steps_lost_ += now_.steps - to.steps;
  now_ = saved_ = to;
  saving_ = false;
  blocking_left_ = background_left_ = blocked_ = step_left_ = step_spent_ = 0;
}

void Training::stop() {
  unfinished_booked_ += step_spent_ + blocked_;
  blocked_ = step_spent_ = 0;
}

Account Training::account() const {
  Account account;
  account[Cause::trained] = now_.trained;
  account[Cause::degraded] = now_.degraded;
  account[Cause::saving] = saving_booked_;
  account[Cause::rollback] = rollback_booked_;
  account[Cause::unfinished] = unfinished_booked_;
  return account;
}

}  // namespace rehearse::sim
