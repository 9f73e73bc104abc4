#include "sim/analytic/stage_sharing.hpp"

#include <algorithm>
#include <limits>

namespace rehearse::sim {
namespace {

constexpr double never = std::numeric_limits<double>::infinity();

class Sharing {
 public:
  Sharing(std::span<const StageWork> works, std::span<const double> users) : works_(works), users_(users), stages_(works.size()) {
    for (std::size_t s = 0; s < works.size(); ++s) begin(s, 0, works[s].begin_s);
  }

  std::vector<double> run() && {
    double now = -never;
    while (true) {
      double next = never;
      seconds_.clear();
      for (std::size_t s = 0; s < works_.size(); ++s) {
        const Stage& stage = stages_[s];
        seconds_.push_back(at_work(s, now) ? seconds(s, now) : 0);
        if (stage.left > 0) next = std::min(next, stage.ready_s > now ? stage.ready_s : now + stage.left * seconds_[s]);
      }
      if (next == never) break;
      advance(now, next);
      now = next;
    }
    std::vector<double> ends;
    for (const Stage& stage : stages_) ends.push_back(stage.ready_s);
    return ends;
  }

 private:
  struct Stage {
    std::size_t turn = 0;
    double ready_s = 0;  // when its turn begins; without one left, when it has ended
    double left = 0;     // of its turn
  };

  [[nodiscard]] bool at_work(std::size_t s, double now) const { return stages_[s].left > 0 && stages_[s].ready_s <= now; }

  void begin(std::size_t s, std::size_t turn, double ready_s) {
    const auto& turns = works_[s].turns;
    if (turn == 0 && turns[0].shared_s <= 0) return begin(s, 1, ready_s + works_[s].pause_s);
    stages_[s] = {turn, ready_s, turn < turns.size() && turns[turn].shared_s > 0 ? 1.0 : 0.0};
  }

  // All of a stage's turn, beside those that are at work now.
  [[nodiscard]] double seconds(std::size_t s, double now) const {
    double others = 0, here = 0;
    for (std::size_t other = 0; other < works_.size(); ++other) {
      if (other == s) continue;
      const double users = users_[s * works_.size() + other];
      others += users;
      if (at_work(other, now)) here += users;
    }
    const StageWork::Turn& turn = works_[s].turns[stages_[s].turn];
    return turn.alone_s + (others > 0 ? here / others : 1) * (turn.shared_s - turn.alone_s);
  }

  void advance(double now, double next) {
    for (std::size_t s = 0; s < works_.size(); ++s) {
      if (seconds_[s] <= 0) continue;
      Stage& stage = stages_[s];
      if (now + stage.left * seconds_[s] <= next) {
        begin(s, stage.turn + 1, next + (stage.turn == 0 ? works_[s].pause_s : 0));
      } else {
        stage.left -= (next - now) / seconds_[s];
      }
    }
  }

  std::span<const StageWork> works_;
  std::span<const double> users_;
  std::vector<Stage> stages_;
  std::vector<double> seconds_;  // [stage] of its turn as things are
};

}  // namespace

void share_among_stages(std::span<const StageWork> works, std::span<const double> users, std::vector<double>& end_s) {
  end_s = Sharing(works, users).run();
}

}  // namespace rehearse::sim
