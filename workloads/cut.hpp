// How a step is cut into operations. The cut never changes what is modelled: what runs beside something else, or is waited for by it, stays
// an operation of its own.
#pragma once

#include "workloads/plan.hpp"

namespace rehearse::workloads {

struct Cut {
  Granularity granularity = Granularity::layer;
  // Nothing can tell whether a unit's collectives come between its computations or after them: no fixed time in them depends on what runs
  // beside. Otherwise they keep their places.
  bool order_unseen = false;

  // Implicit: a granularity alone is right for every job.
  Cut(Granularity how_finely, bool unseen = false) : granularity(how_finely), order_unseen(unseen) {}
  bool operator==(const Cut&) const = default;
  [[nodiscard]] bool merges_calls() const { return order_unseen && granularity != Granularity::op; }
};

}  // namespace rehearse::workloads
