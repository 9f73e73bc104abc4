#include "reference_run.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <list>
#include <map>
#include <span>
#include <stdexcept>
#include <string>

#include "fair_share.hpp"

namespace rehearse::tests {
namespace {

using workloads::Op;
using workloads::OpId;
using workloads::OpKind;
using workloads::Phase;

// A communication under way: the legs of one of its repetitions.
struct Communication {
  OpId op = 0;
  const sim::CommPlan* plan = nullptr;
  int repeats_left = 0;
  std::size_t legs_left = 0;
  std::vector<std::uint32_t> missing;  // [leg] how many legs must end first
  std::vector<std::uint32_t> ranks;    // simulated ranks that take part
};

// What goes on in time: a computation, a delay or a flow.
struct Activity {
  enum class Kind { compute, delay, flow } kind = Kind::delay;
  double left = 0;  // seconds of work, seconds, bytes
  double rate = 1;
  OpId op = 0;                             // compute
  Communication* communication = nullptr;  // delay, flow
  std::uint32_t leg = 0;
  Load load;
};

sim::ContentionPair pair_of(const sim::Gpu& gpu, Phase phase) {
  const auto it = gpu.contention.find(phase);
  return it == gpu.contention.end() ? sim::ContentionPair{} : it->second;
}

Load load_of(std::span<const sim::LinkIndex> links) {
  std::vector<sim::LinkIndex> sorted(links.begin(), links.end());
  std::ranges::sort(sorted);
  Load load;
  for (const sim::LinkIndex link : sorted) {
    if (load.empty() || load.back().first != link) load.emplace_back(link, 0);
    ++load.back().second;
  }
  return load;
}

// Ends that are closer to each other than this are one: rounding.
constexpr double instant_s = 1e-13;

class Run {
 public:
  explicit Run(const ReferenceInput& in) : in_(in), graph_(in.graph), computing_(in.graph.ranks.size(), 0) {
    times_.start_s.assign(graph_.size(), NAN);
    times_.end_s.assign(graph_.size(), NAN);
    for (OpId op = 0; op < graph_.size(); ++op) missing_.push_back(graph_.in_degree(op));
    for (std::uint32_t joint = 0; joint < graph_.joints(); ++joint) absent_.push_back(graph_.members(joint).size());
  }

  ReferenceTimes run() {
    for (OpId op = 0; op < graph_.size(); ++op) {
      if (graph_.in_degree(op) == 0) ready_.push_back(op);
    }
    while (true) {
      while (!ready_.empty()) {
        const OpId op = ready_.back();
        ready_.pop_back();
        arrive(op);
      }
      if (activities_.empty()) break;
      advance();
    }
    if (ended_ != graph_.size()) throw std::runtime_error(std::to_string(graph_.size() - ended_) + " operations never started");
    times_.step_s = step_s();
    return times_;
  }

 private:
  void arrive(OpId id) {
    const Op op = graph_.op(id);
    if (op.kind == OpKind::compute) return compute(id);
    if (op.kind != OpKind::collective) return communicate(id, std::array{id});
    if (--absent_[op.joint] == 0) communicate(graph_.members(op.joint).front(), graph_.members(op.joint));
  }

  void compute(OpId id) {
    times_.start_s[id] = now_;
    const double seconds = in_.prices.compute_s(graph_.op(id));
    if (seconds <= 0) return end(id);
    ++computing_[graph_.op(id).rank];
    activities_.push_back({Activity::Kind::compute, seconds, 1, id, nullptr, 0, {}});
    changed_ = true;
  }

  void communicate(OpId id, std::span<const OpId> members) {
    Communication& it = communications_.emplace_back();
    it.op = id;
    it.plan = &in_.plans[graph_.op(id).item];
    it.repeats_left = it.plan->repeat;
    for (const OpId member : members) {
      times_.start_s[member] = now_;
      it.ranks.push_back(graph_.op(member).rank);
    }
    if (graph_.op(id).kind == OpKind::p2p && graph_.receiver(id) != graph_.op(id).rank) it.ranks.push_back(graph_.receiver(id));
    changed_ = true;
    repeat(it);
  }

  void repeat(Communication& it) {
    it.legs_left = it.plan->legs.size();
    it.missing.clear();
    for (const sim::Leg& leg : it.plan->legs) it.missing.push_back(leg.waits_for);
    for (std::uint32_t leg = 0; leg < it.plan->legs.size(); ++leg) {
      if (it.plan->legs[leg].waits_for == 0) delay(it, leg);
    }
  }

  // A leg is a delay, then a flow.
  void delay(Communication& it, std::uint32_t leg) {
    activities_.push_back({Activity::Kind::delay, std::max(0.0, it.plan->legs[leg].delay_s), 1, 0, &it, leg, {}});
  }

  void flow(Communication& it, std::uint32_t leg) {
    const sim::Leg& what = it.plan->legs[leg];
    if (what.bytes <= 0) return leg_ended(it, leg);
    Activity& activity = activities_.emplace_back(Activity{Activity::Kind::flow, what.bytes, 0, 0, &it, leg, {}});
    activity.load = load_of(it.plan->links_of(what));
    changed_ = true;
  }

  void leg_ended(Communication& it, std::uint32_t leg) {
    --it.legs_left;
    for (const std::uint32_t next : it.plan->released_by(it.plan->legs[leg])) {
      if (--it.missing[next] == 0) delay(it, next);
    }
    if (it.legs_left > 0) return;
    if (--it.repeats_left > 0) return repeat(it);
    const OpId id = it.op;
    communications_.remove_if([&](const Communication& each) { return &each == &it; });
    changed_ = true;
    if (graph_.op(id).kind != OpKind::collective) return end(id);
    for (const OpId member : graph_.members(graph_.op(id).joint)) end(member);
  }

  void end(OpId id) {
    times_.end_s[id] = now_;
    ++ended_;
    for (const OpId next : graph_.successors_of(id)) {
      if (--missing_[next] == 0) ready_.push_back(next);
    }
  }

  // To the next end of anything.
  void advance() {
    if (changed_) set_rates();
    changed_ = false;
    double wait_s = std::numeric_limits<double>::infinity();
    for (const Activity& each : activities_) wait_s = std::min(wait_s, each.left / each.rate);
    now_ += wait_s;
    std::vector<std::list<Activity>::iterator> ended;
    for (auto it = activities_.begin(); it != activities_.end(); ++it) {
      const bool over = it->left / it->rate <= wait_s + instant_s;
      it->left -= wait_s * it->rate;
      if (over) ended.push_back(it);
    }
    for (const auto it : ended) {
      const Activity activity = std::move(*it);
      activities_.erase(it);
      over(activity);
    }
  }

  void over(const Activity& activity) {
    switch (activity.kind) {
      case Activity::Kind::compute:
        --computing_[graph_.op(activity.op).rank];
        changed_ = true;
        return end(activity.op);
      case Activity::Kind::delay:
        return flow(*activity.communication, activity.leg);
      case Activity::Kind::flow:
        changed_ = true;
        return leg_ended(*activity.communication, activity.leg);
    }
  }

  // Of computations and flows, from what is under way now.
  void set_rates() {
    std::vector<double> alpha(graph_.ranks.size(), 1);
    std::vector<std::array<double, sim::port_kinds>> beta(graph_.ranks.size());
    for (auto& each : beta) each.fill(1);
    for (const Communication& each : communications_) {
      const sim::CallPrice& price = in_.prices.calls[graph_.op(each.op).item];
      const sim::ContentionPair pair = pair_of(in_.gpu, graph_.op(each.op).phase);
      const std::array<double, sim::port_kinds> bytes{price.intra_bytes, price.inter_bytes, price.host_bytes};  // by PortKind
      for (const std::uint32_t rank : each.ranks) {
        for (std::size_t kind = 0; kind < sim::port_kinds; ++kind) {
          if (bytes[kind] <= 0) continue;
          alpha[rank] = std::max(alpha[rank], pair.alpha);
          if (computing_[rank] > 0) beta[rank][kind] = std::max(beta[rank][kind], pair.beta);
        }
      }
    }
    std::vector<double> slowest(in_.link_rates.size(), 1);
    for (const sim::PortLink& port : in_.ports)
      slowest[port.link] = std::max(slowest[port.link], beta[port.rank][static_cast<std::size_t>(port.kind)]);
    std::vector<double> link_rates = in_.link_rates;
    for (std::size_t link = 0; link < link_rates.size(); ++link) link_rates[link] /= slowest[link];
    share(link_rates);
    for (Activity& each : activities_) {
      if (each.kind == Activity::Kind::compute) each.rate = 1 / alpha[graph_.op(each.op).rank];
    }
  }

  void share(const std::vector<double>& link_rates) {
    std::vector<Activity*> flows;
    std::vector<const Load*> loads;
    for (Activity& each : activities_) {
      if (each.kind != Activity::Kind::flow) continue;
      flows.push_back(&each);
      loads.push_back(&each.load);
    }
    const std::vector<double> rates = fair_rates(loads, link_rates);
    for (std::size_t i = 0; i < flows.size(); ++i) flows[i]->rate = rates[i];
  }

  // Until the last operation of all, or where steps are staggered, the longest rank from its own start to its own last.
  [[nodiscard]] double step_s() const {
    double longest = 0;
    for (std::uint32_t rank = 0; rank < graph_.ranks.size(); ++rank) {
      const double from_s = graph_.staggered ? own_start_s(rank) : 0;
      for (OpId op = 0; op < graph_.size(); ++op) {
        if (graph_.op(op).rank == rank && seconds(op) > 0) longest = std::max(longest, times_.end_s[op] - from_s);
      }
    }
    return longest;
  }

  // When it can have begun at the latest to compute its first micro-batch when it did.
  [[nodiscard]] double own_start_s(std::uint32_t rank) const {
    OpId first = 0;
    double at_s = std::numeric_limits<double>::infinity();
    for (OpId op = 0; op < graph_.size(); ++op) {
      const bool computes = graph_.op(op).kind == OpKind::compute && graph_.op(op).stream == workloads::Stream::compute;
      if (graph_.op(op).rank != rank || !computes || graph_.op(op).microbatch < 0 || seconds(op) <= 0 || times_.start_s[op] >= at_s)
        continue;
      first = op;
      at_s = times_.start_s[op];
    }
    return std::isfinite(at_s) ? at_s - own_before_s(first) : 0;
  }

  [[nodiscard]] double seconds(OpId op) const { return times_.end_s[op] - times_.start_s[op]; }

  [[nodiscard]] bool releases(OpId before, OpId after) const {
    for (const OpId next : graph_.successors_of(before)) {
      if (next == after) return true;
    }
    return false;
  }

  // The rank's own operations in a row that end where this one can begin.
  [[nodiscard]] double own_before_s(OpId op) const {
    double longest = 0;
    for (OpId before = 0; before < graph_.size(); ++before) {
      if (graph_.op(before).rank != graph_.op(op).rank || !releases(before, op)) continue;
      longest = std::max(longest, own_before_s(before) + seconds(before));
    }
    return longest;
  }

  const ReferenceInput& in_;
  const workloads::StepGraph& graph_;
  std::vector<std::uint32_t> missing_;
  std::vector<std::size_t> absent_;  // [joint]
  std::vector<int> computing_;       // [simulated rank]
  std::vector<OpId> ready_;
  std::list<Activity> activities_;
  std::list<Communication> communications_;
  ReferenceTimes times_;
  std::size_t ended_ = 0;
  double now_ = 0;
  bool changed_ = true;  // rates must be worked out anew
};

}  // namespace

ReferenceTimes reference_run(const ReferenceInput& input) { return Run(input).run(); }

}  // namespace rehearse::tests
