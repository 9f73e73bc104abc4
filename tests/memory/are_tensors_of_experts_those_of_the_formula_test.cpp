// Layers with experts, tensor by tensor: do they add up to what the formula says, by every dispatcher and whatever is computed again?
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>

#include "live_tensors.hpp"
#include "sim/memory/allocator_peaks.hpp"
#include "sim/memory/tensor_writer.hpp"
#include "tests/engine/random_jobs.hpp"
#include "workloads/operators/shard.hpp"
#include "workloads/stage_program.hpp"
#include "workloads/unit_memory.hpp"

namespace rehearse::tests {
namespace {

constexpr double any_memory = 1e15;

// Of each layer of the first stage: forward leaves what the formula counts, backward nothing.
void expect_formula(const sim::Job& job, const std::string& what) {
  const workloads::ExpertLoads loads(job.workload);
  const workloads::StageProgram stage = workloads::stage_programs(job.workload).front();
  const workloads::ReplicaSync sync = workloads::replica_sync(job.workload);
  const workloads::RankMemories formula(job.workload, job.system.software.memory.habits, sync, stage, &loads, 1);
  const workloads::Shard shard = workloads::shard_of(job.workload);
  for (std::size_t u = 1; u + 1 < stage.chunks[0].size(); ++u) {
    const workloads::Unit& unit = stage.chunks[0][u];
    const double kept = formula.at(0, static_cast<int>(u), 3).activations;
    const sim::UnitTensors tensors = sim::tensors_of(job.workload, job.system.software.memory.habits, unit);
    Live live(unit.layer_kind == workloads::LayerKind::experts ? loads.received(1, unit.first_layer, 3) : 0);
    live.arrive(sim::UnitTensors::input);
    live.act(tensors.forward);
    live.leave(sim::UnitTensors::output);
    const double input = static_cast<double>(shard.spread_tokens * shard.hidden) * shard.element;
    EXPECT_NEAR(live.bytes() + input, kept, 1e-9 * kept) << what << " " << unit.name;
    live.arrive(sim::UnitTensors::output_gradient);
    live.act(tensors.backward);
    live.leave(sim::UnitTensors::input_gradient);
    EXPECT_TRUE(live.none()) << what << " " << unit.name;
  }
  const sim::AllocatorPeaks free = *sim::allocator_peaks(job, 0, any_memory);
  EXPECT_FALSE(free.out_of_memory) << what;
  EXPECT_GE(free.reserved, free.allocated) << what;
}

sim::Job job_with(const std::string& model, const std::string& parallel, const std::string& recompute, const std::string& moe) {
  return job_of(
      fmt::format("model: {}\ncluster:{}\ngpus: 8\nparallel: {{{}}}\nbatch: {{global: 32, micro: 1, sequence: 2048}}\n"
                  "software: megatron-core\nrecompute: {}\nmoe: {{{}}}\n",
                  model, small_cluster(8, "{tp: {alpha: 1, beta: 1}}", "{size: 2 TB, bandwidth: 400 GB/s}"), parallel, recompute, moe));
}

// Layers with experts and latent attention, by every dispatcher, in chunks, with modules dropped: forward leaves what the formula counts,
// backward nothing, and an uneven job is trained with what each micro-batch gets.
TEST(TensorsOfExperts, AreThoseOfTheFormula) {
  const std::string latent = "mla: {q_lora: 256, kv_lora: 128, qk_nope: 64, qk_rope: 32, v: 64}", grouped = "kv_heads: 4, qk_norm: true";
  int jobs = 0;
  for (const std::string& attention : {latent, grouped}) {
    for (const char* parallel : {"dp: 8, ep: 8", "dp: 4, tp: 2, sp: true, ep: 4, etp: 1", "dp: 4, tp: 2, sp: true, ep: 2, etp: 2"}) {
      for (const char* recompute : {"none", "full", "{modules: [layernorm, moe_act, shared_experts, mlp]}", "selective"}) {
        for (const char* moe : {"dispatcher: alltoall", "dispatcher: allgather", "dispatcher: hierarchical", "chunks: 4",
                                "chunks: 2, chunk_recompute: false", "chunk_recompute: true", "routing: {zipf: 0.7}"}) {
          const std::string modules =
              attention == latent && recompute[0] == '{' ? "{modules: [layernorm, mla_up_proj, moe_act]}" : recompute;
          const std::string model = fmt::format(
              "{{layers: 4, hidden: 1024, heads: 16, ffn: 4096, activation: swiglu, vocab: 32000, positions: rope, {}, "
              "moe: {{experts: 16, top_k: 4, shared: {}, ffn: 512, first_dense: 1}}}}",
              attention, 1 + jobs % 2);
          const sim::Job job = job_with(model, parallel, modules, moe);
          ASSERT_TRUE(sim::knows_tensors(job.workload, job.system.software.memory.habits)) << moe;
          ++jobs;
          expect_formula(job, fmt::format("{} {} {}", parallel, modules, moe));
        }
      }
    }
  }
}

// Of tensors that are held, those that stand for gradients, by their names in the order of sim/memory/tensor_writer.hpp.
double placeholders(const sim::Job& job) {
  std::map<int, double> held;
  const workloads::StageProgram stage = workloads::stage_programs(job.workload).front();
  for (std::size_t u = 1; u + 1 < stage.chunks[0].size(); ++u) {
    for (const sim::TensorStep& step : sim::tensors_of(job.workload, job.system.software.memory.habits, stage.chunks[0][u]).backward) {
      const bool one = step.tensor >= sim::qkv_placeholder && step.tensor <= sim::latent_fc2_placeholder;
      if (step.kind == sim::TensorStep::Kind::hold && one) held.emplace(step.tensor, step.bytes);
    }
  }
  double sum = 0;
  for (const auto& [tensor, bytes] : held) sum += bytes;
  return sum;
}

// One of each shape: of a shared expert cut in two, as many elements as experts of half the width have, but of another shape.
TEST(TensorsOfExperts, HavePlaceholdersOfEachShape) {
  for (const char* latent : {"", ", latent: 512", ", latent: 256"}) {
    for (const char* parallel : {"{dp: 4, tp: 2, sp: true, ep: 4, etp: 1}", "{dp: 4, tp: 2, sp: true, ep: 2, etp: 2}", "{dp: 8, ep: 8}"}) {
      const sim::Job job = job_of(
          fmt::format("model: {{layers: 4, hidden: 1024, heads: 16, ffn: 4096, activation: swiglu, vocab: 32000, positions: rope,\n"
                      "        moe: {{experts: 16, top_k: 4, shared: 1, ffn: 512, first_dense: 1{}}}}}\ncluster: dgx-h100-ndr400\ngpus: 8\n"
                      "parallel: {}\nbatch: {{global: 32, micro: 1, sequence: 2048}}\nsoftware: megatron-core\n"
                      "moe: {{chunk_recompute: false}}\n",
                      latent, parallel));
      EXPECT_EQ(placeholders(job), workloads::placeholder_bytes(job.workload, job.system.software.memory.habits)) << latent << parallel;
    }
  }
}

// The same of experts narrower than their layer, between two projections.
TEST(TensorsOfExperts, OfAWidthOfTheirOwnAreThoseOfTheFormula) {
  int jobs = 0;
  for (const char* parallel :
       {"dp: 8, ep: 2", "dp: 8, ep: 8", "dp: 4, tp: 2, sp: true, ep: 4, etp: 1", "dp: 4, tp: 2, sp: true, ep: 2, etp: 2"}) {
    for (const char* recompute : {"none", "full", "{modules: [layernorm, moe_act, shared_experts, mlp]}"}) {
      for (const char* moe :
           {"dispatcher: alltoall", "dispatcher: allgather", "dispatcher: hierarchical", "chunks: 2, chunk_recompute: false",
            "dispatcher: hierarchical, chunks: 4, chunk_recompute: false", "routing: {zipf: 0.7}"}) {
        const std::string model = fmt::format(
            "{{layers: 4, hidden: 1024, heads: 16, kv_heads: 4, ffn: 4096, activation: {}, vocab: 32000, positions: rope, biases: false, "
            "moe: {{experts: 16, top_k: 4, shared: {}, ffn: 512, first_dense: 1, latent: 384}}}}",
            jobs % 2 == 0 ? "swiglu" : "relu2", 1 + jobs % 3 / 2);
        const sim::Job job = job_with(model, parallel, recompute, moe);
        ASSERT_TRUE(sim::knows_tensors(job.workload, job.system.software.memory.habits)) << moe;
        ++jobs;
        expect_formula(job, fmt::format("{} {} {}", parallel, recompute, moe));
      }
    }
  }
}

// Activations of several operators, with a gate and without, and attention whose output is copied for its projection.
TEST(TensorsOfExperts, OfOperatorsAroundTheActivationAreThoseOfTheFormula) {
  for (const char* activation : {"swiglu", "gelu"}) {
    for (const char* recompute : {"none", "full", "{modules: [moe_act, mlp_act]}"}) {
      const std::string model = fmt::format(
          "{{layers: 4, hidden: 1024, heads: 16, kv_heads: 4, ffn: 4096, activation: {}, vocab: 32000, positions: rope, biases: false, "
          "moe: {{experts: 16, top_k: 4, shared: 1, ffn: 512, first_dense: 1}}}}",
          activation);
      sim::Job job = job_with(model, "dp: 8, ep: 8", recompute, "dispatcher: alltoall");
      job.workload.fusions.activation = false;
      job.workload.fusions.activation_kept = 2;
      job.workload.fusions.expert_activation_kept = 1;
      job.workload.fusions.attention_copied = true;
      ASSERT_TRUE(sim::knows_tensors(job.workload, job.system.software.memory.habits)) << activation;
      expect_formula(job, fmt::format("{} {}", activation, recompute));
    }
  }
}

}  // namespace
}  // namespace rehearse::tests
