// When do blocks that a collective used come free again?
#include "sim/memory/host_lead.hpp"

#include <gtest/gtest.h>

#include <utility>

namespace rehearse::sim {
namespace {

using workloads::HostAhead;

constexpr double block_bytes = 64.0 * 1024 * 1024, device_bytes = 1e12;

// Blocks of 64 MiB that are taken and given back one by one, one in each of `units` forwards of a layer: how many the allocator comes to
// have.
constexpr workloads::PassKernels launches{34, 62};

int blocks_of(HostAhead ahead, int units, int forwards = 1, bool backward = false, AllocatorStream user = nccl_stream) {
  AllocatorDevice gpu(device_bytes, false);
  HostLead lead(gpu, ahead, launches);
  const AllocatorDevice::Request request = gpu.request(block_bytes, compute_stream, user);
  lead.begin_round();
  for (int i = 0; i < forwards; ++i) lead.begin_forward();
  if (backward) lead.begin_backward();
  for (int i = 0; i < units; ++i) {
    lead.begin_forward_unit();
    AllocatorDevice::Block* block = gpu.take(request);
    gpu.give(block);
  }
  return static_cast<int>(gpu.peaks().reserved / block_bytes);
}

TEST(HostLead, AUnitsBlocksComeFreeAtTheNextOneOrTheOneAfter) {
  EXPECT_EQ(blocks_of(HostAhead::none, 100), 1);
  EXPECT_EQ(blocks_of(HostAhead::units, 100), 2);
}

// 1024 launches at 34 a forward: the GPU has come past a layer when 30.1 more were issued, so that at the 31st its block is there.
TEST(HostLead, TheQueueHolds1024Launches) {
  EXPECT_EQ(blocks_of(HostAhead::queue, 20), 20);
  EXPECT_EQ(blocks_of(HostAhead::queue, 100), 31);
  EXPECT_EQ(blocks_of(HostAhead::queue, 100, 1, false, reduce_stream), 31);  // FSDP's sums of gradients
}

TEST(HostLead, InTheWarmUpTheThirdForwardIsTheFirstThatRunsAhead) {
  EXPECT_EQ(blocks_of(HostAhead::warm_up, 20, 2), 2);
  EXPECT_EQ(blocks_of(HostAhead::warm_up, 20, 3), 20);
  EXPECT_EQ(blocks_of(HostAhead::warm_up, 20, 3, true), 2);
}

// 1024 launches at 62, or with the forward again 96, a backward: the GPU is past a layer when 15.5, or 9.7, more were issued.
TEST(HostLead, ABackwardThatComputesItsForwardAgainHasBoth) {
  for (const auto& [again, blocks] : {std::pair(false, 17), std::pair(true, 11)}) {
    AllocatorDevice gpu(device_bytes, false);
    HostLead lead(gpu, HostAhead::queue, launches);
    const AllocatorDevice::Request request = gpu.request(block_bytes, compute_stream, nccl_stream);
    for (int i = 0; i < 100; ++i) {
      lead.begin_backward_unit(again);
      AllocatorDevice::Block* block = gpu.take(request);
      gpu.give(block);
    }
    EXPECT_EQ(gpu.peaks().reserved / block_bytes, blocks) << again;
  }
}

TEST(HostLead, MessagesBetweenStagesBringAllBlocksBack) {
  for (const HostAhead ahead : {HostAhead::queue, HostAhead::messages}) {
    AllocatorDevice gpu(device_bytes, false);
    HostLead lead(gpu, ahead, launches);
    const AllocatorDevice::Request request = gpu.request(block_bytes, compute_stream, nccl_stream);
    for (int i = 0; i < 20; ++i) {
      if (i % 5 == 0) lead.pass_message();
      lead.begin_forward_unit();
      AllocatorDevice::Block* block = gpu.take(request);
      gpu.give(block);
    }
    EXPECT_EQ(gpu.peaks().reserved / block_bytes, ahead == HostAhead::messages ? 5 : 20);
  }
}

TEST(HostLead, WhoWaitsForTheGpuHasAllBlocksBack) {
  AllocatorDevice gpu(device_bytes, false);
  HostLead lead(gpu, HostAhead::queue, launches);
  const AllocatorDevice::Request request = gpu.request(block_bytes, compute_stream, nccl_stream);
  for (int i = 0; i < 3; ++i) {
    lead.begin_forward_unit();
    AllocatorDevice::Block* block = gpu.take(request);
    gpu.give(block);
    lead.catch_up();
  }
  EXPECT_EQ(gpu.peaks().reserved, block_bytes);
}

}  // namespace
}  // namespace rehearse::sim
