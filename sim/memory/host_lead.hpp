// How far the host is ahead of the GPU while it asks for memory. PyTorch's NCCL marks what a collective reads and writes as used by its
// stream (record_stream in ProcessGroupNCCL, off only with TORCH_NCCL_AVOID_RECORD_STREAMS): freed, it is not free before the GPU has come
// past the collective.
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
// queue, else as units, and without a pipeline as none. queue: by as many launches as the GPU's queue takes.
class HostLead {
 public:
  HostLead(AllocatorDevice& device, workloads::HostAhead lead) : device_(device), lead_(lead) {}

  // From one moment without activations to the next.
  void begin_round() { forwards_ = 0; }
  void begin_forward() { ++forwards_; }
  void begin_backward() { forwards_ = met_backward; }
  // Of a forward, or a backward.
  void begin_unit(bool forward) {
    using workloads::HostAhead;
    if (lead_ == HostAhead::queue || (lead_ == HostAhead::warm_up && forwards_ > 2)) {
      issue(forward ? forward_launches : backward_launches);
    } else if (++units_ % 2 == 0 || lead_ == HostAhead::none) {
      catch_up();
    }
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
  // CUDA's queue of a device (CUDA_DEVICE_MAX_CONNECTIONS=1) takes about 1024 kernels before a launch waits. A layer's are counted in
  // nanotron's source (models/llama.py: 34 forward, 62 backward).
  static constexpr std::uint64_t queue_launches = 1024, forward_launches = 34, backward_launches = 62;
  static constexpr int met_backward = -1'000'000'000;  // of forwards_

  struct Issued {
    std::uint64_t at;  // launches before it
    AllocatorDevice::Freed freed;
  };
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
  std::uint64_t units_ = 0, launches_ = 0;
  int forwards_ = 0;
  std::deque<Issued> issued_;
};

}  // namespace rehearse::sim
