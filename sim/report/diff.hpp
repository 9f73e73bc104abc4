// What `diff` is told beside its jobs, for its reporters.
#pragma once

namespace rehearse::sim {

struct GpuHourPrice {
  double price = 0;  // of one GPU for an hour, in whatever money
};

}  // namespace rehearse::sim
