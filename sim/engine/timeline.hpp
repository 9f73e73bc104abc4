// Executions as a timeline for people and trace tools.
#pragma once

#include <memory>
#include <vector>

#include "sim/engine/aftermath.hpp"
#include "sim/engine/execution.hpp"
#include "sim/engine/prepared_step.hpp"
#include "sim/timeline.hpp"

namespace rehearse::sim {

class StepEvents;

// Of executions that follow one another in time, on the same ranks. Operations without duration are left out.
class TimelineMaker {
 public:
  TimelineMaker();
  ~TimelineMaker();
  TimelineMaker(TimelineMaker&&) noexcept;

  // Behind those that were added before.
  void add(std::shared_ptr<const PreparedStep> prepared, std::vector<Execution> executions);
  [[nodiscard]] Timeline timeline() &&;

 private:
  Timeline timeline_;
  std::shared_ptr<StepEvents> events_;
};

// The same of a step in which something failed.
[[nodiscard]] Timeline timeline_of(std::shared_ptr<const PreparedStep> prepared, FailedStep step, const std::vector<RankFailure>& failures);

}  // namespace rehearse::sim
