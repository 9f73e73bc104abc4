// Experts that work in a width of their own between two projections of the layer's (moe.latent): FLOPs, parameters and bytes by hand.
#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>
#include <tuple>

#include "jobs.hpp"
#include "sim/analytic/predict.hpp"
#include "sim/engine/simulate.hpp"
#include "workloads/expert_layer.hpp"
#include "workloads/operators/section.hpp"
#include "workloads/stage_program.hpp"

namespace rehearse::tests {
namespace {

using workloads::LayerKind;
using workloads::Operator;
using workloads::Pass;
using workloads::Workload;

struct NarrowSizes {
  double hidden = 1024, latent = 256, ffn = 512, top_k = 4, experts = 16, sequence = 2048;
};
constexpr NarrowSizes of_narrow;

// moe: what is said of the experts beside their number.
sim::Job narrow_job(const std::string& parallel, const std::string& more = "", const std::string& moe = ", latent: 256, shared: 2") {
  const std::string text = fmt::format(R"(
model: {{layers: 4, hidden: 1024, heads: 16, kv_heads: 16, ffn: 4096, activation: swiglu, vocab: 0, positions: rope,
        moe: {{experts: 16, top_k: 4, ffn: 512{}}}}}
cluster: dgx-h100-ndr400
gpus: 8
parallel: {}
batch: {{global: 32, micro: 1, sequence: 2048}}
{})",
                                       moe, parallel, more);
  return sim::read_job(config::Node::load_text(text, "job.yaml"), "job");
}

const Operator& named(const std::vector<workloads::Item>& items, const std::string& name) {
  for (const workloads::Item& item : items) {
    const auto* op = std::get_if<Operator>(&item);
    if (op != nullptr && op->name == name) return *op;
  }
  throw std::runtime_error("no operator " + name);
}

double product_flops(const std::vector<Operator>& all) {
  double sum = 0;
  for (const Operator& op : all) sum += op.cls == workloads::OperatorClass::gemm ? op.flops : 0;
  return sum;
}

double product_flops(const std::vector<workloads::Item>& items) {
  std::vector<Operator> all;
  for (const workloads::Item& item : items) {
    if (const auto* op = std::get_if<Operator>(&item)) all.push_back(*op);
  }
  return product_flops(all);
}

// Two FLOPs per token and weight that it meets, by the count that knows nothing of operators.
TEST(NarrowerExperts, MultiplyEveryActiveWeightOncePerToken) {
  const sim::Job job = narrow_job("{dp: 8, ep: 8}");
  const Workload& w = job.workload;
  const double flops = product_flops(workloads::layer_program(w, false, LayerKind::experts).forward) +
                       product_flops(workloads::operators_of(w, workloads::ExpertLayer(w).work({Pass::forward}, 0, 0, 0)));
  workloads::Model one = w.model;
  one.layers = 1;
  const double matrices = workloads::model_flops_per_sequence(one, of_narrow.sequence, false) -
                          workloads::attention_flops_per_sequence(one, of_narrow.sequence, false);
  EXPECT_NEAR(3 * flops, matrices, 1e-9 * matrices);
  // Router, two projections, the shared experts of the whole width, the routed ones of theirs; attention.
  const double by_hand = of_narrow.hidden * of_narrow.experts + 2 * of_narrow.hidden * of_narrow.latent +
                         3 * of_narrow.hidden * 2 * of_narrow.ffn + of_narrow.top_k * 3 * of_narrow.latent * of_narrow.ffn +
                         4 * of_narrow.hidden * of_narrow.hidden;
  EXPECT_NEAR(flops, 2 * of_narrow.sequence * by_hand, 1e-9 * flops);
}

// Projections are duplicated over tp: each rank has all of both, for its own tokens. Whole ranks, and eight with two parts of each expert.
TEST(NarrowerExperts, HaveTheParametersOfBothWidths) {
  for (const auto& [parallel, ep, etp, tp] :
       {std::tuple{"{dp: 8, ep: 1}", 1, 1, 1}, {"{dp: 8, ep: 8}", 8, 1, 1}, {"{dp: 4, tp: 2, sp: true, ep: 4, etp: 2}", 4, 2, 2}}) {
    const sim::Job job = narrow_job(parallel);
    const workloads::BlockProgram layer = workloads::layer_program(job.workload, false, LayerKind::experts);
    EXPECT_EQ(layer.expert_parameters, of_narrow.experts / ep * 3 * of_narrow.latent * of_narrow.ffn / etp) << parallel;
    const double dense = of_narrow.hidden * of_narrow.experts + 2 * of_narrow.hidden * of_narrow.latent +
                         (3 * of_narrow.hidden * 2 * of_narrow.ffn + 4 * of_narrow.hidden * of_narrow.hidden) / tp + 2 * of_narrow.hidden;
    EXPECT_EQ(layer.parameters - layer.expert_parameters, dense) << parallel;
    EXPECT_EQ(named(layer.forward, "latent_fc1").m, of_narrow.sequence / tp) << parallel;
    EXPECT_EQ(named(layer.forward, "latent_fc2").n, of_narrow.hidden) << parallel;
  }
  const workloads::ParameterCount whole = workloads::count_parameters(narrow_job("{dp: 8}").workload.model);
  EXPECT_EQ(whole.moe_layer, of_narrow.experts * 3 * of_narrow.latent * of_narrow.ffn + of_narrow.hidden * of_narrow.experts +
                                 2 * of_narrow.hidden * of_narrow.latent + 3 * of_narrow.hidden * 2 * of_narrow.ffn +
                                 4 * of_narrow.hidden * of_narrow.hidden + 2 * of_narrow.hidden);
}

// What travels, and what is copied for that, is of the narrow width: a quarter of what it would be.
TEST(NarrowerExperts, SendTokensOfTheirWidth) {
  for (const char* dispatcher : {"alltoall", "hierarchical", "allgather"}) {
    for (const char* parallel : {"{dp: 8, ep: 8}", "{dp: 4, tp: 2, sp: true, ep: 2, etp: 2}"}) {
      const std::string more = fmt::format(
          "moe: {{dispatcher: {}}}\nsoftware: {{like: megatron-core, experts: {{dispatch_kernels: deepep, gathers_counts: "
          "false, exchanges_weights: false}}}}\n",
          dispatcher);
      const sim::Job narrow = narrow_job(parallel, more), wide = narrow_job(parallel, more, ", shared: 2");
      const workloads::ExpertLayer narrow_layer(narrow.workload), wide_layer(wide.workload);
      for (const Pass pass : {Pass::forward, Pass::backward_input}) {
        const workloads::ExpertCalls &few = narrow_layer.calls(pass, 0, 0, 0), &many = wide_layer.calls(pass, 0, 0, 0);
        ASSERT_EQ(few.dispatch.size(), many.dispatch.size());
        ASSERT_FALSE(few.dispatch.empty());
        for (std::size_t i = 0; i < few.dispatch.size(); ++i)
          EXPECT_NEAR(few.dispatch[i].bytes, many.dispatch[i].bytes * of_narrow.latent / of_narrow.hidden, 1e-9 * many.dispatch[i].bytes)
              << dispatcher;
        for (std::size_t i = 0; i < few.combine.size(); ++i)
          EXPECT_NEAR(few.combine[i].bytes, many.combine[i].bytes * of_narrow.latent / of_narrow.hidden, 1e-9 * many.combine[i].bytes)
              << dispatcher;
      }
      if (dispatcher != std::string("alltoall")) continue;
      const auto permuted = [](const sim::Job& job) {
        return named(workloads::layer_program(job.workload, false, LayerKind::experts).forward, "permute").bytes;
      };
      EXPECT_NEAR(permuted(narrow), permuted(wide) * of_narrow.latent / of_narrow.hidden, 1e-9 * permuted(wide));
    }
  }
}

// The projection up reads the sum over a token's experts in backward, the one down what the norm gave: of a layer, that sum is kept, and in
// 8 bits a cast of the norm's output beside the shared experts'. Of pairs, inputs and outputs of experts are narrow.
TEST(NarrowerExperts, KeepWhatTheirProjectionsRead) {
  for (const auto& [precision, element, own] : {std::tuple{"bf16", 2.0, 0.0}, {"fp8", 1.0, 1.0}}) {
    const std::string more = fmt::format("precision: {}\nrecompute: none\n", precision);
    const sim::Job narrow = narrow_job("{dp: 8, ep: 8}", more), wide = narrow_job("{dp: 8, ep: 8}", more, ", shared: 2");
    const auto kept = [](const sim::Job& job) { return workloads::layer_activation_bytes(job.workload, false, LayerKind::experts); };
    EXPECT_NEAR(kept(narrow) - kept(wide), of_narrow.sequence * (of_narrow.latent + own * of_narrow.hidden) * element, 1e-6 * kept(wide))
        << precision;
    const auto of_pair = [](const sim::Job& job) { return workloads::pair_tensors(job.workload); };
    EXPECT_EQ(of_pair(narrow).input, of_narrow.latent * element) << precision;
    EXPECT_EQ(of_pair(narrow).inner, of_pair(wide).inner) << precision;
  }
}

// Full recomputation that ends before the last product leaves out the projection up; the sum that it reads comes again.
TEST(NarrowerExperts, AreComputedAgainUpToTheirSum) {
  const sim::Job job = narrow_job("{dp: 8, ep: 8}", "recompute: full\nsoftware: {like: megatron-core, early_stop: true}\n");
  ASSERT_TRUE(job.workload.recompute.stops_early);
  const workloads::BlockProgram layer = workloads::layer_program(job.workload, true, LayerKind::experts);
  EXPECT_THROW((void)named(layer.recompute, "latent_fc2"), std::runtime_error);
  EXPECT_EQ(named(layer.recompute, "latent_fc1").n, of_narrow.latent);
  EXPECT_GT(named(layer.recompute, "unpermute").bytes, 0);
}

void expect_both_ways(const sim::Job& job, const std::string& what) {
  const sim::StepResult formula = sim::predict(job), simulated = sim::simulate_in_child(job);
  EXPECT_NEAR(simulated.step_s, formula.step_s, 0.02 * formula.step_s) << what;
  for (const sim::RankMemory& rank : simulated.memory.ranks) {
    const double peak = formula.memory.ranks.at(static_cast<std::size_t>(rank.stage)).peak_bytes();
    EXPECT_NEAR(rank.peak_bytes(), peak, 1e-12 * peak) << what << ", stage " << rank.stage;
  }
}

// To the project's stated bounds, by every dispatcher, with what is computed again, in chunks.
TEST(NarrowerExperts, TakeAsLongByFormulaAsOnTheTimeline) {
  for (const char* how : {"moe: {dispatcher: alltoall}\n", "moe: {dispatcher: hierarchical}\nrecompute: full\n",
                          "moe: {dispatcher: allgather}\nrecompute: {modules: [moe_act, layernorm]}\n",
                          "moe: {dispatcher: alltoall, chunks: 2, chunk_recompute: false}\n"}) {
    for (const char* parallel : {"{dp: 8, ep: 8}", "{dp: 2, tp: 2, sp: true, pp: 2, ep: 4, etp: 1}"}) {
      expect_both_ways(narrow_job(parallel, how), std::string(how) + parallel);
    }
  }
}

// Modules of multi-token prediction behind layers of one block each: attention and experts, or an MLP where there are none.
TEST(NarrowerExperts, StandInModulesBehindAPattern) {
  for (const char* layers : {"MEM*EME-, moe: {experts: 8, top_k: 2, ffn: 512, latent: 256}", "M-M*-MM-"}) {
    const bool moe = std::string(layers).find("moe") != std::string::npos;
    for (const int pp : {1, 2}) {
      const std::string text = fmt::format(R"(
model: {{layers: 8, hidden: 1024, heads: 16, kv_heads: 16, ffn: 4096, activation: relu2, vocab: 32000, positions: none, mtp: 2,
        mixer: {{kind: mamba2, heads: 16, head_dim: 64, groups: 8, state: 64}}, pattern: {}}}
cluster: dgx-h100-ndr400
gpus: 8
parallel: {{pp: {}, dp: {}, ep: {}}}
batch: {{global: 32, micro: 1, sequence: 2048}}
)",
                                           layers, pp, 8 / pp, moe ? 4 : 1);
      const sim::Job job = sim::read_job(config::Node::load_text(text, "job.yaml"), "job");
      int modules = 0;
      for (const workloads::StageProgram& stage : workloads::stage_programs(job.workload)) {
        for (const workloads::Unit& unit : stage.chunks[0]) {
          if (unit.kind != workloads::UnitKind::prediction) continue;
          ++modules;
          EXPECT_EQ(unit.layer_kind, moe ? LayerKind::experts : LayerKind::dense) << layers;
          EXPECT_EQ(unit.reach, workloads::Reach::sequence) << layers;
        }
      }
      EXPECT_EQ(modules, 2);
      expect_both_ways(job, layers);
    }
  }
}

// All elements of Nemotron 3 Super's checkpoint (NVIDIA-NeMo/Megatron-Bridge 067f987, its model verification card), less corrections of 41
// routers, which no gradient trains, and the norm behind the module of multi-token prediction, which the head's stands for here.
TEST(NarrowerExperts, AreNemotron3Supers) {
  const sim::Job job = sim::read_job(
      config::Node::load_text("model: {like: nemotron3-super-120b-a12b, mtp: 1}\ncluster: gb300-nvl72\ngpus: 8\nparallel: {dp: 8}\n"
                              "batch: {global: 8, micro: 1, sequence: 8192}\n",
                              "job.yaml"),
      "job");
  const workloads::StageProgram stage = workloads::stage_programs(job.workload).front();
  EXPECT_EQ(stage.parameters.all, 123'611'033'088.0 - 41 * 512 - 4096);
  const workloads::Unit& module = *std::ranges::find(stage.chunks[0], workloads::UnitKind::prediction, &workloads::Unit::kind);
  EXPECT_EQ(module.layer_kind, LayerKind::experts);
  EXPECT_EQ(module.reach, workloads::Reach::sequence);
}

}  // namespace
}  // namespace rehearse::tests
