// How far the host is ahead of the GPU while it asks for memory. PyTorch's NCCL marks what a collective reads and writes as used by its
// stream (workloads::Recorded): freed, it is not free before the GPU has come past the collective.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "sim/memory/allocator_device.hpp"
#include "workloads/unit_memory.hpp"

namespace rehearse::sim {

// units: the host waits for the GPU after every second unit: how far is not known, the 70B and the 405B runs of SimuMax ask for this. none:
// after every unit. warm_up: in the third and later forwards of a pipeline's warm-up, where the GPU waits for its messages to be taken, as
// queue, else as units, and without a pipeline as none. queue: by as many launches as the GPU's queue takes. messages: as queue, but the
// host waits for the GPU with every message between stages.
class HostLead {
 public:
  // launches: of a layer (workloads::MemoryHabits).
  HostLead(AllocatorDevice& device, workloads::HostAhead lead, workloads::PassKernels launches)
      : device_(device),
        lead_(lead),
        forward_(static_cast<std::uint64_t>(launches.forward)),
        backward_(static_cast<std::uint64_t>(launches.backward)) {}

  // From one moment without activations to the next.
  void begin_round() { forwards_ = 0; }
  void begin_forward() { ++forwards_; }
  void begin_backward() { forwards_ = met_backward; }
  // again: that first computes its forward again.
  void begin_forward_unit() { begin_unit(forward_); }
  void begin_backward_unit(bool again) { begin_unit(backward_ + (again ? forward_ : 0)); }
  void pass_message() {
    if (lead_ == workloads::HostAhead::messages) catch_up();
  }
  void catch_up() {
    device_.catch_up();
    issued_.clear();
  }
  // What decides from now on.
  void add_to(std::vector<std::uint64_t>& snapshot) {
    snapshot.push_back(units_ % 2);
    const AllocatorDevice::Freed now = device_.freed_in_use();
    for (const Issued& unit : issued_) {
      snapshot.push_back(launches_ - unit.at);
      for (std::size_t i = 0; i < now.size(); ++i) snapshot.push_back(now[i] - unit.freed[i]);
    }
  }

 private:
  // CUDA's queue of a device (CUDA_DEVICE_MAX_CONNECTIONS=1) takes about 1024 kernels before a launch waits.
  static constexpr std::uint64_t queue_launches = 1024;
  static constexpr int met_backward = -1'000'000'000;  // of forwards_

  struct Issued {
    std::uint64_t at;  // launches before it
    AllocatorDevice::Freed freed;
  };
  void begin_unit(std::uint64_t launches) {
    using workloads::HostAhead;
    const bool queues = lead_ == HostAhead::queue || lead_ == HostAhead::messages;
    if (queues || (lead_ == HostAhead::warm_up && forwards_ > 2)) {
      issue(launches);
    } else if (++units_ % 2 == 0 || lead_ == HostAhead::none) {
      catch_up();
    }
  }
  void issue(std::uint64_t launches) {
    issued_.push_back({launches_, device_.freed_in_use()});
    launches_ += launches;
    while (!issued_.empty() && issued_.front().at + queue_launches <= launches_) {
      device_.catch_up_to(issued_.front().freed);
      issued_.pop_front();
    }
  }

  AllocatorDevice& device_;
  workloads::HostAhead lead_;
  std::uint64_t forward_, backward_;
  std::uint64_t units_ = 0, launches_ = 0;
  int forwards_ = 0;
  std::deque<Issued> issued_;
};

}  // namespace rehearse::sim
