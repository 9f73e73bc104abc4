#include "sim/wholejob/job_run.hpp"

#include <algorithm>

namespace rehearse::sim {
namespace {

constexpr std::int64_t most_failures = 1'000'000;             // no job outlives so many
constexpr std::uint64_t recovery_stream = ~std::uint64_t{0};  // of random numbers: none of the fault sources has this index

Cause cause_of_waiting(bool detection, bool waiting, bool restart) {
  if (detection) return Cause::detection;
  if (waiting) return Cause::repair;
  return restart ? Cause::restart : Cause::load;
}

}  // namespace

JobRun::JobRun(const WholeJobPlan& plan, StepTimes& steps, std::uint64_t seed, History* history)
    : plan_(plan),
      steps_(steps),
      recovery_(plan.job->whole.recovery),
      policy_(RecoveryPolicyRegistry::get(recovery_.policy)),
      map_(plan.job->workload.parallel, plan.job->system.places()),
      faults_(plan.job->whole.faults.open(seed)),
      next_fault_(faults_->next()),
      random_(seed, recovery_stream),
      history_(history),
      training_(plan.training),
      pool_(recovery_.spares),
      step_(plan.training.nominal_step) {
  result_.seed = seed;
  note("start", plan.init);
  enter(Phase::init, plan.init);
}

Ns JobRun::next_event() const {
  const Ns fault = next_fault_ ? next_fault_->at : never;
  return std::min({fault, pool_.next_back(), slowness_.next_end(), plan_.limit, plan_.give_up});
}

Span JobRun::next() {
  const Ns until_event = next_event() - now_;
  if (phase_ == Phase::training) {
    span_ = training_.advance(until_event);
  } else {
    span_ = std::min(until_event, phase_left_);
  }
  return {span_, phase_ == Phase::training};
}

void JobRun::pass() {
  now_ += span_;
  if (phase_ == Phase::training) {
    if (training_.finished()) return finish("finished");
    if (pool_.can_grow() && training_.paused()) return grow();
  } else {
    const Cause cause = phase_ == Phase::init
                            ? Cause::init
                            : cause_of_waiting(phase_ == Phase::detection, phase_ == Phase::waiting, phase_ == Phase::restart);
    result_.account[cause] += span_;
    phase_left_ -= phase_left_ == never ? 0 : span_;
    if (phase_left_ == 0) end_phase();
  }
  handle_events();
}

void JobRun::enter(Phase phase, Ns length) {
  phase_ = phase;
  phase_left_ = length;
}

void JobRun::end_phase() {
  if (phase_ == Phase::detection) {
    after_detection();
  } else if (phase_ == Phase::restart && !started_) {
    note("start", plan_.init);
    enter(Phase::init, plan_.init);
  } else if (phase_ == Phase::restart) {
    note("loading", load_);
    enter(Phase::load, load_);
  } else {
    resume();
  }
}

// With the nodes at hand, or once they are.
void JobRun::after_detection() {
  if (pool_.waiting()) {
    ++result_.waits;
    note("waiting for nodes");
    return enter(Phase::waiting, never);
  }
  pool_.fill();
  note("restarting", restart_);
  enter(Phase::restart, restart_);
}

void JobRun::resume() {
  started_ = true;
  pool_.rejoin();
  training_.pause_after_save(false);
  enter(Phase::training, never);
  update_step();
  note("training", 0, step_);
}

// At a complete checkpoint, with nodes that came back: restart with more replicas.
void JobRun::grow() {
  training_.roll_back(Tier::main);
  restart_ = to_ns(swap_time(recovery_).draw_s(random_));
  load_ = plan_.load + plan_.data;
  ++result_.resized;
  note("growing", restart_);
  enter(Phase::restart, restart_);
}

void JobRun::finish(const char* how) {
  over_ = true;
  training_.stop();
  note(how);
}

void JobRun::handle_events() {
  if (now_ >= plan_.limit) return finish("time up");
  if (now_ >= plan_.give_up) {
    result_.finished = 0;
    return finish("given up");
  }
  if (const int ended = slowness_.end_by(now_); ended > 0) {
    update_step();
    note("as fast as before", 0, step_);
  }
  while (pool_.next_back() <= now_) {
    if (pool_.take_back()) training_.pause_after_save(true);
    note("node repaired");
    if (phase_ == Phase::waiting && !pool_.waiting()) after_detection();
  }
  while (next_fault_ && next_fault_->at <= now_) {
    if (result_.all_failures() >= most_failures) {
      result_.finished = 0;
      return finish("given up");
    }
    strike(*next_fault_);
    next_fault_ = faults_->next();
  }
}

void JobRun::strike(const Fault& fault) {
  if (fault.kind == FaultKind::slow) return slow_down(fault);
  if (felt(fault)) return fail(fault);
  ++result_.not_felt;
  note("not felt", fault);
}

void JobRun::slow_down(const Fault& fault) {
  ++result_.slow;
  slowness_.begin(fault);
  update_step();
  note("slow", fault, 0, step_);
}

// Replicas that are left out are idle with all their nodes.
bool JobRun::felt(const Fault& fault) const {
  if (fault.level == FaultLevel::job) return true;
  return !nodes_hit(fault).empty();
}

std::vector<int> JobRun::nodes_hit(const Fault& fault) const {
  const std::set<int> out = pool_.out();
  const std::set<int> lost = map_.replicas(out);
  std::vector<int> hit;
  for (int node = fault.node; node < fault.node + fault.nodes; ++node) {
    if (!out.contains(node) && !std::ranges::includes(lost, map_.replicas(node))) hit.push_back(node);
  }
  return hit;
}

// As the policy says; but a job that cannot go on without the lost nodes waits for others.
Response JobRun::response_to(const Fault& fault, const std::vector<int>& nodes, std::string& why_not) {
  const int count = static_cast<int>(nodes.size());
  Response response = policy_.respond({fault.level, count, pool_.enough_for(count)}, recovery_);
  if (!response.without_lost) return response;
  std::set<int> out = pool_.out();
  out.insert(nodes.begin(), nodes.end());
  const ClusterState smaller = slowness_.state(map_, out);
  if (steps_.at(smaller) > 0) return response;
  why_not = steps_.why_not(smaller);
  Response wait;
  wait.time = &time_of(FaultLevel::pod, recovery_);
  wait.nodes = Response::Nodes::wait;
  return wait;
}

void JobRun::take_nodes(const Fault& fault, const std::vector<int>& nodes, const Response& response) {
  if (nodes.empty()) return;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const double repair_s = recovery_.repair.draw_s(random_);
    pool_.send_to_repair(now_ + std::max<Ns>(1, to_ns(repair_s)));
  }
  slowness_.replaced(fault.node, fault.nodes);
  if (!response.without_lost) return pool_.replace(static_cast<int>(nodes.size()));
  pool_.leave_out(nodes);
  ++result_.resized;
}

// Checkpoints in memory are gone with all nodes that held a part of them, or when all processes move; others stay.
void JobRun::roll_back(const Fault& fault, const std::vector<int>& nodes, bool everything) {
  const bool in_memory = plan_.checkpoint.store == Store::memory;
  const bool lost = everything || static_cast<int>(nodes.size()) >= plan_.job->whole.checkpoint.copies;
  const std::int64_t before = training_.steps_done();
  const Tier survivor = in_memory && lost ? Tier::backup : Tier::main;
  training_.roll_back(survivor);
  const bool from_start = training_.steps_done() == 0;
  load_ = from_start ? plan_.data : (survivor == Tier::backup ? plan_.backup_load : plan_.load) + plan_.data;
  note("failure", fault, before - training_.steps_done());
}

void JobRun::fail(const Fault& fault) {
  ++result_.failures[static_cast<std::size_t>(fault.level)];
  const std::vector<int> nodes = fault.level == FaultLevel::pod ? nodes_hit(fault) : std::vector<int>{};
  std::optional<StepUnderWay> struck = step_under_way();
  std::string why_not;  // the job cannot shrink as its policy would have it
  const Response response = response_to(fault, nodes, why_not);
  take_nodes(fault, nodes, response);
  roll_back(fault, nodes, response.everything);
  if (history_ != nullptr) history_->back().step_under_way = std::move(struck);
  if (!why_not.empty()) {
    ++result_.refused;
    note("cannot shrink");
    if (history_ != nullptr) history_->back().why = why_not;
  }
  const bool own = response.own_time_of_fault && fault.recovery.has_value();
  const Ns time = own ? *fault.recovery : to_ns(response.time->draw_s(random_));
  // A failure while the job recovers from another does not shorten what is left of that.
  restart_ = phase_ == Phase::restart ? std::max(time, phase_left_) : time;
  const Ns detection = to_ns(recovery_.detection.draw_s(random_));
  enter(Phase::detection, detection);
  if (detection == 0) end_phase();
}

std::optional<StepUnderWay> JobRun::step_under_way() const {
  const auto step = phase_ == Phase::training && history_ != nullptr ? training_.step_under_way() : std::nullopt;
  if (!step) return std::nullopt;
  const std::set<int> out = pool_.out();
  return StepUnderWay{slowness_.state(map_, out), out, step->done, step->spent, step->all};
}

void JobRun::update_step() {
  const Ns step = steps_.at(slowness_.state(map_, pool_.out()));
  step_ = step > 0 ? step : step_;
  training_.set_step(step_);
}

RunResult JobRun::result() const {
  RunResult result = result_;
  const Account trained = training_.account();
  for (std::size_t i = 0; i < cause_count; ++i) result.account.ns[i] += trained.ns[i];
  result.wall = now_;
  result.steps = training_.steps_done();
  result.lost_steps = training_.steps_lost();
  result.saves = training_.saves();
  return result;
}

void JobRun::note(const char* event, Ns duration, Ns step) {
  if (history_ == nullptr) return;
  HistoryEntry& entry = history_->emplace_back();
  entry.at = now_;
  entry.event = event;
  entry.steps = training_.steps_done();
  entry.duration = duration;
  entry.step = step;
}

void JobRun::note(const char* event, const Fault& fault, std::int64_t lost_steps, Ns step) {
  note(event, 0, step);
  if (history_ == nullptr) return;
  history_->back().fault = fault;
  history_->back().lost_steps = lost_steps;
}

}  // namespace rehearse::sim
