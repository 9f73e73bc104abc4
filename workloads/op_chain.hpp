// The main chain of one simulated rank: operations that wait for one another, with collectives beside them (internal to the builder).
#pragma once

#include <map>
#include <string>
#include <vector>

#include "workloads/step_build.hpp"

namespace rehearse::workloads {

// Where the chain is, for the labels of its operations.
struct Place {
  Slot slot{Slot::Kind::forward, -1, -1};
  int layer = -1, unit = -1;
  Pass pass = Pass::update;
  int units = 1;  // that its operations work on one after another
};

class OpChain {
 public:
  OpChain(Build& build, std::uint32_t rank) : build_(build), rank_(rank), global_(build.folding.ranks[rank].rank) {}

  void move_to(const Place& place) { at_ = place; }
  void set_pass(Pass pass) { at_.pass = pass; }
  [[nodiscard]] const std::vector<OpId>& tail() const { return tail_; }  // what the next operation waits for
  void also_wait_for(OpId op) { tail_.push_back(op); }                   // from now on
  void next_waits_for(OpId op) { extra_.push_back(op); }                 // the next operation only
  // Two chains of the same rank, whose operations wait for nothing of one another but their place in the streams. Both begin where the
  // first is, and join when the first is entered for good.
  void fork() { other_ = {at_, tail_, {}, no_op}; }
  void enter(int which);  // 0 or 1
  void join();
  void mark() { first_ = no_op; }
  [[nodiscard]] OpId first_since_mark() const { return first_; }

  // On the chain.
  void compute(const void* origin, const std::vector<Operator>& operators, int repeat, Phase phase, const std::string& label);
  void compute(const ExpertWork& work, Phase phase, const std::string& label);
  void collective(const Communication& what, int repeat, const std::string& label);
  void experts(const ExpertSegment& segment, Phase phase, const std::string& label);
  void run(const Segment& segment, Phase phase, const std::string& label);
  // Of each of the place's units; only segments that repeat exactly stand for several.
  void run(const std::vector<Segment>& segments, Phase phase, const std::string& label);
  void step_overhead();
  // Part of an optimizer on the host.
  void copy(const std::string& label, GroupKind way, double bytes);

  // Beside the chain, in its own stream, after `after`.
  OpId beside(const Communication& what, int repeat, const std::vector<OpId>& after, const std::string& label);
  // Several in a stream, one after the other; the last.
  OpId beside(const std::vector<Communication>& calls, std::vector<OpId> after, Stream stream, const std::string& label);
  OpId copy_beside(const std::string& name, GroupKind way, double bytes, const std::vector<OpId>& after, const std::string& label);
  // A message to the rank `peer` of another stage, after the chain's tail.
  OpId send(bool forward, int peer, double bytes);

 private:
  OpId append(Op op, const std::string& label);
  [[nodiscard]] Op placed(OpKind kind, Stream stream, Phase phase) const;
  [[nodiscard]] Op collective_op(const Communication& what, int repeat);
  [[nodiscard]] Op copy_op(const std::string& name, GroupKind way, double bytes, Phase phase);
  std::uint32_t group(GroupKind kind);
  void queued(const ComputeSegment& segment, Phase phase, const std::string& label);
  void paired(const void* origin, const Operator& product, Phase phase, const std::string& label);
  void split(const SplitSegment& segment, Phase phase, const std::string& label);
  void both(const BesideSegment& segment, Phase phase, const std::string& label);
  void ring(const RingSegment& segment, Phase phase, const std::string& label);

  Build& build_;
  std::uint32_t rank_;
  int global_;
  Place at_;
  std::vector<OpId> tail_, extra_;
  OpId first_ = no_op;
  struct Thread {
    Place at;
    std::vector<OpId> tail, extra;
    OpId first = no_op;
  };
  Thread other_;
  int inside_ = 0;
  std::map<GroupKind, std::uint32_t> groups_;
  std::map<std::pair<const ComputeSegment*, int>, std::uint32_t> queued_;  // works, by segment and how often it runs
  std::map<int, std::uint32_t> group_to_;                                  // by peer
};

}  // namespace rehearse::workloads
