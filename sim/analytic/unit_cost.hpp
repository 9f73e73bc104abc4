// Equations (1), (2): what one unit (layer, embedding, head) costs per micro-batch.
#pragma once

#include <vector>

#include "sim/analytic/expert_prices.hpp"
#include "sim/analytic/port_sharing.hpp"
#include "sim/cost/price_book.hpp"
#include "sim/result.hpp"
#include "sim/system.hpp"
#include "workloads/stage_program.hpp"

namespace rehearse::sim {

// Seconds of each class of operators and communication beside each other on a GPU.
struct Contentions {
  explicit Contentions(const Gpu& gpu);
  ContentionPair tp, cp, ep, dp, offload;
};

// Phases that it spends per micro-batch, without what replicas exchange.
struct UnitCost {
  PhaseTimes forward, backward;  // backward includes recomputation; of the input's gradient only when the schedule splits backward
  PhaseTimes weight;             // then the weight gradient, otherwise 0
  PhaseTimes whole;              // backward in one slot: the host waits once for both
  std::vector<PieceTimes> forward_pieces, backward_pieces;  // in order, as overlapped pairs interleave them
  bool recomputed = false;                                  // in full
  double copy_s = 0;                                        // of its activations to the host, or back, where they are offloaded
  double copy_alone_s = 0;                                  // the same while other stages leave the link to the host to it
  WaitedCalls forward_calls, backward_calls, weight_calls, whole_calls;
  PortTimes copy_ports;
  double nic_s = 0;  // of all passes where stages share NICs: for how long its calls are there, waited for or not

  // Of the same unit: every number but those of its copies.
  [[nodiscard]] bool takes_as_long_as(const UnitCost& other) const;
};

// So far (0 to 1) on the way from one price of a unit to another, in every number; its copies as at the end.
[[nodiscard]] UnitCost between(const UnitCost& from, const UnitCost& to, double part);

class UnitPricer {
 public:
  // `experts`: of a model that has them, else null. All must outlive it.
  UnitPricer(const System& system, const workloads::Workload& workload, PriceBook& prices, const Contentions& contentions,
             ExpertPrices* experts)
      : system_(system), workload_(workload), prices_(prices), contentions_(contentions), experts_(experts) {}
  // On a rank of this pipeline stage.
  [[nodiscard]] UnitCost price(const workloads::Unit& unit, int stage);

  [[nodiscard]] double seconds(const workloads::Operator& op) const { return operator_seconds(system_.gpu, system_.software, op); }

 private:
  // One pass of a unit on a stage, and where its times go.
  struct PassCost {
    int stage, layer;
    PhaseTimes& times;
    WaitedCalls& calls;
    double& nic_s;
    std::vector<PieceTimes>* pieces = nullptr;  // null: no pair interleaves this pass
    bool in_dense = false;                      // its last piece is none of experts
  };
  void add(const std::vector<workloads::Segment>& segments, Phase phase, PassCost& to);
  void add(const workloads::Segment& segment, Phase phase, PassCost& to);
  void add_split(const workloads::SplitSegment& segment, Phase phase, PassCost& to);
  void add_beside(const workloads::BesideSegment& segment, Phase phase, PassCost& to);
  void add_ring(const workloads::RingSegment& segment, Phase phase, PassCost& to);
  void add_experts(const workloads::RoutedExperts& what, Phase phase, PassCost& to);
  // Of a call that is waited for so long, of the seconds it takes: what it puts on the ports.
  void wait_for(const workloads::Communication& what, double waited_s, double all_s, PassCost& to);
  // So many of a call, waited for or not.
  void send(const workloads::Communication& what, double times, PassCost& to);
  [[nodiscard]] double seconds(const workloads::ComputeSegment& segment, int stage);
  [[nodiscard]] double paired_s(const workloads::Operator& product) const;  // beside a collective
  [[nodiscard]] double seconds(const workloads::Communication& what, int stage) { return prices_.seconds(what, stage); }

  const System& system_;
  const workloads::Workload& workload_;
  PriceBook& prices_;
  const Contentions& contentions_;
  ExpertPrices* experts_;
};

}  // namespace rehearse::sim
