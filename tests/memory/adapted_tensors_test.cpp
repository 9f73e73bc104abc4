// Do PEFT's operators, one by one, leave what the formula counts, and what stays behind a backward with adapters?
#include "sim/memory/adapted_tensors.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>

#include "followed_tensors.hpp"
#include "sim/memory/allocator_peaks.hpp"
#include "sim/memory/predicted.hpp"
#include "tests/engine/jobs.hpp"
#include "workloads/frozen_weights.hpp"
#include "workloads/operators/shard.hpp"
#include "workloads/stage_program.hpp"

namespace rehearse::tests {
namespace {

constexpr double adapted_room = 1e15;

sim::Job adapted_job(const std::string& lora, const std::string& rest, int layers = 3, int ranks = 4) {
  const std::string text = fmt::format(
      "model: {{layers: {}, hidden: 1024, heads: 8, kv_heads: 4, ffn: 4096, vocab: 32000, activation: swiglu, dropout: 0}}\n"
      "cluster: dgx-h100-ndr400\ngpus: {}\nparallel: {{dp: {}}}\nbatch: {{global: {}, micro: 2, sequence: 2048}}\n"
      "precision: {{compute: bf16, weights: bf16, gradients: bf16, optimizer: bf16}}\nattention: flash\nrecompute: full\n"
      "lora: {{rank: 16, {}}}\n{}\n",
      layers, ranks, ranks, 2 * ranks, lora, rest);
  return sim::read_job(config::Node::load_text(text, "adapted.yaml"), "adapted");
}

std::string peft_stack(const std::string& memory, const char* root = "true") {
  return "software: {like: peft-fsdp, root_unit: " + std::string(root) + ", memory: {" + memory + "}, fusions: {optimizer: false}}";
}

const char* const by_zero3 = "optimizer: {sharding: zero3}\n";

void follow_adapted_units(const sim::Job& job) {
  const workloads::MemoryHabits& habits = job.system.software.memory.habits;
  ASSERT_TRUE(sim::knows_tensors(job.workload, habits));
  const workloads::StageProgram stage = workloads::stage_programs(job.workload).front();
  const workloads::Shard s = workloads::shard_of(job.workload);
  for (const workloads::Unit& unit : stage.chunks[0]) {
    const sim::UnitTensors tensors = sim::tensors_of(job.workload, habits, unit);
    std::map<int, double> live;
    if (unit.kind != workloads::UnitKind::embedding) live.emplace(sim::UnitTensors::input, static_cast<double>(s.tokens * s.hidden) * 2);
    follow(tensors.forward, live);
    live.erase(sim::UnitTensors::output);
    double bytes = 0;
    for (const auto& [tensor, size] : live) bytes += size;
    EXPECT_DOUBLE_EQ(bytes, workloads::unit_memory(job.workload, habits, unit).activations) << unit.name;
    if (unit.kind != workloads::UnitKind::head) live.emplace(sim::UnitTensors::output_gradient, 0);
    follow(tensors.backward, live);
    live.erase(sim::UnitTensors::input_gradient);
    EXPECT_TRUE(live.empty()) << unit.name << " " << live.begin()->first;
  }
}

TEST(AdaptedTensors, ForwardLeavesWhatTheFormulaCountsAndBackwardLeavesNothing) {
  for (const std::string lora : {"dropout: 0.1", "dropout: 0", "dropout: 0.1, weights: fp32", "dropout: 0.1, base: nf4",
                                 "dropout: 0, targets: [q_proj, down_proj]"}) {
    for (const std::string memory : {"outputs_kept: true", "loss: 12", "loss: 14"}) {
      follow_adapted_units(adapted_job(lora, by_zero3 + peft_stack(memory + ", frozen_inputs: false")));
    }
  }
  follow_adapted_units(adapted_job("dropout: 0.1", "optimizer: {sharding: none}\n" + peft_stack("frozen_inputs: false")));
  follow_adapted_units(adapted_job("dropout: 0", std::string(by_zero3) + "software: fsdp-qlora"));  // keys and values copied for every head
  const sim::Job held = adapted_job("dropout: 0.1", by_zero3 + peft_stack("frozen_inputs: true"));
  EXPECT_FALSE(sim::knows_tensors(held.workload, held.system.software.memory.habits));
}

double adapted_peak(const sim::Job& job) { return sim::predicted_memory(job).ranks.front().tensor_bytes(); }

// Every layer behind the one at work has left its input and the gradient of that: of many layers the peak is in the first one's backward,
// and one layer more is an input and a gradient, where without them it is the input alone, before the last one's backward. In that of the
// first one all adapters' gradients are there as well, of the rank's shard, which one micro-batch makes anew.
TEST(AdaptedTensors, FrozenUnitsHoldInputsAndGradients) {
  constexpr double states = 2.0 * 2048 * 1024 * 2;
  const auto job_of_layers = [](int layers, const char* held) {
    return adapted_job("dropout: 0.1", by_zero3 + peft_stack(fmt::format("frozen_inputs: {}, loss: 4", held), "false"), layers);
  };
  const auto more = [&](const char* held) { return adapted_peak(job_of_layers(40, held)) - adapted_peak(job_of_layers(30, held)); };
  const workloads::Parameters of_four = workloads::stage_programs(job_of_layers(4, "true").workload).front().parameters;
  EXPECT_NEAR(more("true") - more("false"), 10 * (states + of_four.trained() / 4 * 2 / 4), 1);
}

// Logits in fp32 are there until the backward is over: at the peak, in a layer's backward of many tokens a word, they are beside it.
TEST(AdaptedTensors, LoopsThatKeepOutputsHoldLogitsInFp32) {
  const auto at = [&](const char* kept) {
    return adapted_peak(adapted_job("dropout: 0.1", by_zero3 + peft_stack(fmt::format("outputs_kept: {}", kept)), 3));
  };
  EXPECT_NEAR(at("true") - at("false"), 2.0 * 2048 * 32000 * 4, 1e-9 * at("true"));
}

// Both tables and the last norm, in 16 bits, are gathered while a layer is at work; where the head is at work its own table was there.
// FSDP2 copies what one rank alone has as well.
TEST(AdaptedTensors, TheRootStaysGathered) {
  const auto at = [&](const char* root, bool copies, int ranks) {
    const std::string stack = fmt::format(
        "software: {{like: peft-fsdp, copies_exchanged: {0}, flat_parameters: {1}, root_unit: {2}, memory: {{frozen_inputs: false, loss: "
        "12}}}}",
        copies, !copies, root);
    return adapted_peak(adapted_job("dropout: 0.1", by_zero3 + stack, 3, ranks));
  };
  constexpr double table = 32000.0 * 1024 * 2;
  for (const auto& [copies, ranks] : {std::pair(false, 4), std::pair(true, 4), std::pair(true, 1)})
    EXPECT_NEAR(at("true", copies, ranks) - at("false", copies, ranks), table, 1e-9 * table) << copies << " " << ranks;
}

// bitsandbytes' scales are no parameters: half a byte is sharded, 1/64 and 4/16384 are not; torchao's are, under FSDP2. On the host's side
// shards alone.
TEST(AdaptedTensors, ScalesOfFourBitsAreWholeUnderFsdp1) {
  sim::Job job = adapted_job("base: nf4", by_zero3 + peft_stack("loss: 12"));
  const workloads::Parameters own{.all = 1100, .experts = 0, .layers = 1000, .frozen = 1000};
  const auto held = [&] { return workloads::frozen_bytes_held(job.workload, workloads::replica_sync(job.workload), own); };
  const double scales = 1000.0 / 64 + 4000.0 / 16384;
  const auto gathered = [&] { return workloads::replica_sync(job.workload).gathered_bytes(own); };
  const double adapters = 100 * 2;
  EXPECT_DOUBLE_EQ(held().on_gpu, 1000 * 0.5 / 4 + scales);
  EXPECT_DOUBLE_EQ(gathered(), 1000 * 0.5 + adapters);  // scales are there already
  job.workload.offload_weights = true;
  EXPECT_DOUBLE_EQ(held().on_gpu, scales);
  EXPECT_DOUBLE_EQ(held().on_host, 1000 * 0.5 / 4);
  job.workload.offload_weights = false;
  job.workload.optimizer.flat = false;
  job.workload.optimizer.copies = true;
  EXPECT_DOUBLE_EQ(held().on_gpu, (1000 * 0.5 + scales) / 4);
  EXPECT_DOUBLE_EQ(gathered(), 1000 * 0.5 + scales + adapters);
  job.workload.optimizer.zero_stage = 0;
  job.workload.optimizer.copies = false;
  EXPECT_DOUBLE_EQ(gathered(), 1000 * 0.5 + scales + adapters);  // whole, with all it has
}

// FSDP holds them by a hook: nothing does where nothing is sharded, and the allocator's sequence is known then.
TEST(AdaptedTensors, NobodyHoldsInputsWithoutFsdp) {
  const auto job_of = [](const char* held) {
    return adapted_job("dropout: 0.1", fmt::format("optimizer: {{sharding: none}}\n{}", peft_stack(fmt::format("frozen_inputs: {}", held))),
                       8);
  };
  const sim::Job held = job_of("true");
  EXPECT_EQ(adapted_peak(held), adapted_peak(job_of("false")));
  EXPECT_TRUE(sim::knows_tensors(held.workload, held.system.software.memory.habits));
}

// What is reserved is at least what is allocated, and the sequence allocates what the formula counts but for the unit that is gathered
// beside the one at work, which the formula has with overlap.dp_parameters alone: 4 % of so small a model.
TEST(AdaptedTensors, AllocateWhatTheFormulaCounts) {
  for (const std::string lora : {"dropout: 0.1", "dropout: 0.1, base: nf4"}) {
    for (const std::string rest : {"optimizer: {sharding: zero3}\n", "optimizer: {sharding: none}\n",
                                   "optimizer: {sharding: zero3, device: cpu}\noffload: {weights: true}\n"}) {
      const sim::Job job = adapted_job(lora, rest + peft_stack("frozen_inputs: false, outputs_kept: true"), 8);
      const auto peaks = sim::allocator_peaks(job, 0, adapted_room);
      ASSERT_TRUE(peaks);
      EXPECT_GE(peaks->reserved, peaks->allocated);
      EXPECT_NEAR(peaks->allocated / adapted_peak(job), 1, 0.05) << lora << " " << rest;
    }
  }
}

// Adapters in 16 bits beside a master copy: FSDP shards that, without sharding it is there as well. One adapter of rank 4096 stands beside
// every projection of attention, so that 4 bytes of each of its parameters are seen.
TEST(AdaptedTensors, HaveMasterCopiesOfAdaptersIn16Bits) {
  for (const std::string sharding : {"zero3", "none"}) {
    const auto job_with = [&](const char* state) {
      sim::Job job =
          adapted_job("dropout: 0, targets: [o_proj]", "optimizer: {sharding: " + sharding + "}\n" + peft_stack("frozen_inputs: false"), 3);
      job.workload.lora.rank = 4096;
      job.workload.precision.optimizer = state == std::string("fp32") ? workloads::DType::fp32 : workloads::DType::bf16;
      return job;
    };
    const auto more = [&](auto peak) { return peak(job_with("fp32")) - peak(job_with("bf16")); };
    const double trained = workloads::stage_programs(job_with("bf16").workload).front().parameters.trained();
    const double expected = sharding == "none" ? 4 * trained : 2 * trained / 4;
    EXPECT_NEAR(more(adapted_peak), expected, 1) << sharding;
    EXPECT_NEAR(more([](const sim::Job& job) { return sim::allocator_peaks(job, 0, adapted_room)->allocated; }), expected, 0.02 * expected)
        << sharding;
  }
}

}  // namespace
}  // namespace rehearse::tests
