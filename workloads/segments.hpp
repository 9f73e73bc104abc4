// The passes of a unit (embedding, layer, head) as segments ready to be turned into operations (the step graph) or summed up (the
// formulas).
#pragma once

#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "workloads/cut.hpp"
#include "workloads/operators.hpp"

namespace rehearse::workloads {

struct ComputeSegment {
  std::vector<Operator> operators;
  std::string name;
  std::shared_ptr<const PassQueue> queue = nullptr;  // of the pass that the operators belong to
  bool behind_gather = false;                        // all of them (Operator::behind_gather)
};
struct CallSegment {
  Communication what;
  int repeat = 1;
};
struct RingSegment {
  RingAttention ring;
};
// A matrix product and the tensor-parallel collective before or after it, cut into `splits` pieces that overlap (equation 20). `product`
// and `collective` are one piece.
struct SplitSegment {
  Operator product;
  Communication collective;
  bool collective_first = true;
  int splits = 1;
};
// A collective and a product that do not depend on each other, started together: the reduction of an input gradient beside the product of
// the weight gradient.
struct BesideSegment {
  Operator product;
  Communication collective;
};
struct ExpertSegment {
  RoutedExperts experts;
};
using Segment = std::variant<ComputeSegment, CallSegment, RingSegment, SplitSegment, BesideSegment, ExpertSegment>;

// Equal layers share one program.
struct UnitProgram {
  std::vector<Segment> forward, recompute, backward;
  std::vector<Segment> backward_input, backward_weight;  // backward in two, for schedules that split it
  double parameters = 0;                                 // of dense matrices and experts
  double expert_parameters = 0;                          // of experts
  double frozen_parameters = 0;                          // with LoRA: all but the adapters
  double layer_parameters = 0;                           // all of them but adapters, where it is a layer of the model
  int tensors = 0;                                       // of these parameters, adapters apart
  double offloaded_bytes = 0;                            // activations that move to the host's memory between forward and backward
  double offloaded_per_pair = 0;                         // and of them for every (token, expert) pair that a layer's experts get
};

// Turns the items of a block into segments. Operators one by one at granularity op, otherwise those in a row together. Collectives stand
// where they are; where the order is unseen, and in jobs with overlapped pairs (overlap.ep), they follow the computations between experts,
// rings and overlapped products, kind by kind: a pair's other half computes beside them.
class Cutter {
 public:
  Cutter(const Workload& workload, Cut cut) : workload_(workload), cut_(cut) {}
  [[nodiscard]] UnitProgram unit(const BlockProgram& block) const;

 private:
  [[nodiscard]] std::vector<Segment> segments(const std::vector<Item>& items) const;
  const Workload& workload_;
  Cut cut_;
};

// Whether n equal units one after another take the same time as each segment n times.
[[nodiscard]] bool repeats_exactly(const std::vector<Segment>& segments, Cut cut);

}  // namespace rehearse::workloads
