// Training between failures: steps, one after another, and checkpoints, kept in whole nanoseconds. Knows neither faults nor clocks.
#pragma once

#include <cstdint>
#include <optional>

#include "sim/wholejob/account.hpp"

namespace rehearse::sim {

struct SaveTimes {
  Ns blocking = 0;    // training stands still
  Ns background = 0;  // after that, while training goes on; the checkpoint is complete at its end
};

struct TrainingPlan {
  std::int64_t steps = 0;     // to be trained; INT64_MAX: until the time is up
  Ns nominal_step = 0;        // of the healthy job, > 0
  std::int64_t interval = 1;  // steps from checkpoint to checkpoint
  SaveTimes save = {};
  double writing_slowdown = 1;    // of steps during a background write
  std::int64_t backup_every = 0;  // steps; such checkpoints go to the backup too. 0: there is none
  SaveTimes backup_save = {};     // on top of `save`
};

enum class Tier { main, backup };  // of checkpoints, by what they survive

class Training {
 public:
  explicit Training(const TrainingPlan& plan);

  // Trains for at most `time`. Returns how much it used: less when the last step is done and saved, or when `pause_after_save` was asked
  // for and a checkpoint is complete.
  Ns advance(Ns time);
  [[nodiscard]] bool finished() const;

  // The time of steps from now on, >= nominal_step. What is done of the current step stays done.
  void set_step(Ns step);
  // A failure: back to the last complete checkpoint that survives it (the job's start when there is none).
  void roll_back(Tier survivor);
  void pause_after_save(bool pause) { pause_after_save_ = pause; }
  [[nodiscard]] bool paused() const { return paused_; }  // since a checkpoint was completed
  // The time is up: what is not a whole step is booked as unfinished.
  void stop();

  // The step under way, or about to begin; nothing while training stands still for a save.
  struct Step {
    double done = 0;        // share of it
    Ns spent = 0, all = 0;  // time spent on it, and that a whole one takes at the time
  };
  [[nodiscard]] std::optional<Step> step_under_way() const;

  [[nodiscard]] std::int64_t steps_done() const { return now_.steps; }
  [[nodiscard]] std::int64_t steps_lost() const { return steps_lost_; }
  [[nodiscard]] std::int64_t saves() const { return saves_; }
  // Its share of the job's account; adds up to the time it was given.
  [[nodiscard]] Account account() const;

 private:
  struct Progress {
    std::int64_t steps = 0;
    Ns trained = 0, degraded = 0;
  };

  [[nodiscard]] Ns step_now() const;
  [[nodiscard]] bool save_due() const;
  void start_save();
  void complete_save();
  Ns block(Ns time);
  Ns train(Ns time);
  Ns whole_steps(Ns time);
  Ns part_of_step(Ns time);
  void pass_background(Ns time);
  void rescale(Ns from, Ns to);

  TrainingPlan plan_;
  Ns step_, writing_step_;  // without and with a background write
  Progress now_, saved_, backed_up_, being_saved_;
  bool saving_ = false, with_backup_ = false, pause_after_save_ = false, paused_ = false;
  Ns blocking_left_ = 0, background_left_ = 0;
  Ns blocked_ = 0;                     // of the save under way
  Ns step_left_ = 0, step_spent_ = 0;  // of the step under way; 0: at a boundary
  Ns saving_booked_ = 0, rollback_booked_ = 0, unfinished_booked_ = 0;
  std::int64_t steps_lost_ = 0, saves_ = 0;
};

}  // namespace rehearse::sim
