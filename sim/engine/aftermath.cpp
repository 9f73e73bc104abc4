#include "sim/engine/aftermath.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "config/quantity.hpp"

namespace rehearse::sim {
namespace {

using workloads::OpId;
using workloads::OpKind;
using workloads::StepGraph;

class Examination {
 public:
  Examination(const System& system, const StepGraph& graph, const std::vector<RankFailure>& failures, const Execution& run)
      : system_(system), graph_(graph), run_(run), dies_s_(graph.ranks.size(), never_s) {
    for (const RankFailure& failure : failures) {
      for (const std::uint32_t rank : failure.ranks) {
        if (!failure.ports) dies_s_[rank] = std::min(dies_s_[rank], failure.at_s);
      }
    }
    check_instant(failures.front().at_s);
    find_receives();
    detect(failures.front().at_s);
    forget_later();
  }

  FailedStep result() {
    draw();
    describe();
    return std::move(out_);
  }

 private:
  [[nodiscard]] bool alive(std::uint32_t rank) const { return dies_s_[rank] == never_s; }
  [[nodiscard]] bool ended(OpId id) const { return std::isfinite(run_.end_s[id]); }

  void check_instant(double failed_s) const {
    double last_s = 0;
    for (const double end_s : run_.end_s) last_s = std::max(last_s, end_s);
    if (last_s >= failed_s) return;
    throw config::InputError(fmt::format("'{}' is after the end of the step, which takes {}",
                                         system_.simulation.faults.failures.front().text,
                                         config::human_quantity(last_s, config::Dimension::time)));
  }

  // A living rank that lacks nothing but messages waits for them since its own last operation before that.
  void find_receives() {
    std::vector<double> own_s(graph_.size(), 0);
    std::vector<bool> own_missing(graph_.size());
    std::vector<std::vector<OpId>> messages(graph_.size());
    for (OpId before = 0; before < graph_.size(); ++before) {
      for (const OpId after : graph_.successors_of(before)) {
        if (ended(before)) {
          if (graph_.op(before).rank == graph_.op(after).rank) own_s[after] = std::max(own_s[after], run_.end_s[before]);
        } else if (graph_.op(before).kind == OpKind::p2p && graph_.op(before).rank != graph_.op(after).rank) {
          messages[after].push_back(before);
        } else {
          own_missing[after] = true;
        }
      }
    }
    for (OpId id = 0; id < graph_.size(); ++id) {
      if (own_missing[id]) continue;
      for (const OpId message : messages[id]) out_.receives.push_back({graph_.op(id).rank, message, own_s[id]});
    }
  }

  [[nodiscard]] bool waits(OpId id) const {
    return graph_.op(id).kind != OpKind::compute && std::isfinite(run_.arrive_s[id]) && !ended(id);
  }

  // torch.distributed's watchdog looks at each communication on its own.
  void detect(double failed_s) {
    double since_s = never_s;
    const auto notices = [&](std::uint32_t rank, double from_s) {
      if (dies_s_[rank] > from_s + system_.simulation.timeout_s) since_s = std::min(since_s, from_s);
    };
    for (OpId id = 0; id < graph_.size(); ++id) {
      if (waits(id)) notices(graph_.op(id).rank, run_.arrive_s[id]);
    }
    for (const HungReceive& receive : out_.receives) notices(receive.rank, receive.since_s);
    end_s_ = std::max(failed_s, since_s + system_.simulation.timeout_s);
  }

  // What would fail after everything has stopped does not.
  void forget_later() {
    for (double& dies_s : dies_s_) dies_s = dies_s < end_s_ ? dies_s : never_s;
    std::erase_if(out_.receives, [&](const HungReceive& receive) { return !alive(receive.rank); });
    for (const StepFailure& failure : system_.simulation.faults.failures) {
      if (failure.at_s < end_s_ || failure.drawn) continue;
      throw config::InputError(fmt::format("'{}' is after the end of the step, which is lost after {}", failure.text,
                                           config::human_quantity(end_s_, config::Dimension::time)));
    }
  }

  // When a rank's streams stop, at the latest.
  [[nodiscard]] double stops_s(std::uint32_t rank) const { return std::min(end_s_, dies_s_[rank]); }

  void draw() {
    out_.drawn = run_;
    out_.drawn.begin_s.clear();
    out_.hung.assign(graph_.size(), false);
    out_.cut.assign(graph_.size(), false);
    for (OpId id = 0; id < graph_.size(); ++id) draw(id);
    std::erase_if(out_.receives, [&](const HungReceive& receive) { return receive.since_s >= end_s_; });
  }

  void draw(OpId id) {
    const double stop_s = stops_s(graph_.op(id).rank);
    double& start_s = out_.drawn.arrive_s[id];
    start_s = run_.start_s(graph_, id);
    double& end_s = out_.drawn.end_s[id];
    if (end_s <= stop_s && ended(id)) return;
    if (waits(id) && alive(graph_.op(id).rank)) {
      out_.hung[id] = run_.arrive_s[id] < stop_s;
      start_s = run_.arrive_s[id];
    } else {
      out_.cut[id] = start_s < stop_s;
    }
    end_s = std::isfinite(stop_s) ? stop_s : 0;
    if (!(start_s < end_s)) start_s = end_s = 0;
  }

  void describe() {
    Aftermath& after = out_.aftermath;
    for (const StepFailure& failure : system_.simulation.faults.failures) {
      if (failure.at_s < end_s_) after.failures.push_back({failure.text, failure.at_s, failure.ranks});
    }
    after.detected = std::isfinite(end_s_);
    after.operations = static_cast<long>(graph_.size());
    after.ended = std::ranges::count_if(run_.end_s, [&](double end_s) { return std::isfinite(end_s) && end_s <= end_s_; });
    describe_ranks();
    double last_s = 0;
    for (const RankAftermath& rank : after.ranks) last_s = std::max(last_s, rank.last_s);
    after.detected_s = after.detected ? end_s_ : 0;
    after.lost_s = after.detected ? end_s_ : last_s;
    describe_hung();
  }

  void describe_ranks() {
    std::vector<bool> all_ended(graph_.ranks.size(), true);
    for (const workloads::SimulatedRank& rank : graph_.ranks) {
      out_.aftermath.ranks.push_back({rank.rank, rank.stage, rank.multiplicity, RankAftermath::End::waiting, 0});
    }
    for (OpId id = 0; id < graph_.size(); ++id) {
      const std::uint32_t rank = graph_.op(id).rank;
      if (ended(id) && run_.end_s[id] <= stops_s(rank)) {
        out_.aftermath.ranks[rank].last_s = std::max(out_.aftermath.ranks[rank].last_s, run_.end_s[id]);
      } else {
        all_ended[rank] = false;
      }
    }
    for (std::uint32_t rank = 0; rank < graph_.ranks.size(); ++rank) {
      if (!alive(rank)) {
        out_.aftermath.ranks[rank].end = RankAftermath::End::dead;
      } else if (all_ended[rank]) {
        out_.aftermath.ranks[rank].end = RankAftermath::End::done;
      }
    }
  }

  void add_hung(std::uint32_t rank, OpId id, const std::string& prefix, double since_s) {
    const workloads::Call& call = graph_.calls[graph_.op(id).item];
    out_.aftermath.hung.push_back({graph_.ranks[rank].rank, prefix + graph_.labels[graph_.op(id).label],
                                   std::string(workloads::name_of(graph_.groups[call.group].kind)), since_s});
  }

  void describe_hung() {
    for (OpId id = 0; id < graph_.size(); ++id) {
      if (out_.hung[id]) add_hung(graph_.op(id).rank, id, "", run_.arrive_s[id]);
    }
    for (const HungReceive& receive : out_.receives) add_hung(receive.rank, receive.message, "recv ", receive.since_s);
    std::ranges::stable_sort(out_.aftermath.hung, {}, &HungOperation::since_s);
  }

  const System& system_;
  const StepGraph& graph_;
  const Execution& run_;
  std::vector<double> dies_s_;  // [simulated rank]
  double end_s_ = never_s;      // of everything
  FailedStep out_;
};

}  // namespace

FailedStep after_failure(const System& system, const StepGraph& graph, const std::vector<RankFailure>& failures, const Execution& run) {
  return Examination(system, graph, failures, run).result();
}

}  // namespace rehearse::sim
