// One whole job, from its start to its end, as a sequence of spans of time between which something happens. Exact: whole nanoseconds.
#pragma once

#include <memory>

#include "sim/job/recovery_policy.hpp"
#include "sim/wholejob/history.hpp"
#include "sim/wholejob/node_pool.hpp"
#include "sim/wholejob/plan.hpp"
#include "sim/wholejob/run_result.hpp"
#include "sim/wholejob/slowness.hpp"

namespace rehearse::sim {

struct Span {
  Ns length = 0;
  bool training = false;  // the cluster computes; else it stands still
};

class JobRun {
 public:
  // `history` may be null. All must outlive the run.
  JobRun(const WholeJobPlan& plan, StepTimes& steps, std::uint64_t seed, History* history);

  [[nodiscard]] bool over() const { return over_; }
  // The time until the next thing happens; it may be 0.
  [[nodiscard]] Span next();
  // That time has passed.
  void pass();
  [[nodiscard]] RunResult result() const;

 private:
  enum class Phase { init, training, detection, waiting, restart, load };

  [[nodiscard]] Ns next_event() const;
  void enter(Phase phase, Ns length);
  void end_phase();
  void after_detection();
  void resume();
  void grow();
  void finish(const char* how);

  void handle_events();
  void strike(const Fault& fault);
  void slow_down(const Fault& fault);
  void fail(const Fault& fault);
  [[nodiscard]] std::vector<int> nodes_hit(const Fault& fault) const;
  [[nodiscard]] bool felt(const Fault& fault) const;
  [[nodiscard]] Response response_to(const Fault& fault, const std::vector<int>& nodes, std::string& why_not);
  void take_nodes(const Fault& fault, const std::vector<int>& nodes, const Response& response);
  void roll_back(const Fault& fault, const std::vector<int>& nodes, bool everything);

  [[nodiscard]] std::optional<StepUnderWay> step_under_way() const;
  void update_step();
  void note(const char* event, Ns duration = 0, Ns step = 0);
  void note(const char* event, const Fault& fault, std::int64_t lost_steps = 0, Ns step = 0);

  const WholeJobPlan& plan_;
  StepTimes& steps_;
  const RecoverySpec& recovery_;
  const RecoveryPolicy& policy_;
  NodeMap map_;
  std::unique_ptr<FaultStream> faults_;
  std::optional<Fault> next_fault_;
  Random random_;
  History* history_;

  Training training_;
  NodePool pool_;
  Slowness slowness_;
  Phase phase_ = Phase::init;
  Ns now_ = 0, phase_left_ = 0, span_ = 0, step_;
  Ns restart_ = 0, load_ = 0;  // still to come after detection
  bool started_ = false;       // a failure before that starts the job over
  bool over_ = false;
  RunResult result_;
};

}  // namespace rehearse::sim
