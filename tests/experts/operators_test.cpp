// FLOPs, parameters and bytes of layers with experts and latent attention, against the model's own counts and by hand.
#include <gtest/gtest.h>

#include "jobs.hpp"
#include "workloads/expert_layer.hpp"
#include "workloads/stage_program.hpp"

namespace rehearse::tests {
namespace {

using workloads::LayerKind;
using workloads::Pass;
using workloads::Workload;

sim::Job job_of(const std::string& model, int gpus, const std::string& parallel, const std::string& extra = "") {
  const std::string text =
      fmt::format("model: {}\ncluster: dgx-h100-ndr400\ngpus: {}\nparallel: {}\nbatch: {{global: {}, micro: 1, sequence: 4096}}\n{}", model,
                  gpus, parallel, 4 * gpus, extra);
  return sim::read_job(config::Node::load_text(text, "job.yaml"), "job");
}

double gemm_flops(const std::vector<workloads::Operator>& operators) {
  double sum = 0;
  for (const workloads::Operator& op : operators) sum += op.cls == workloads::OperatorClass::gemm ? op.flops : 0;
  return sum;
}

double forward_gemm_flops(const workloads::BlockProgram& program) {
  double sum = 0;
  for (const workloads::Item& item : program.forward) {
    const auto* op = std::get_if<workloads::Operator>(&item);
    if (op != nullptr && op->cls == workloads::OperatorClass::gemm) sum += op->flops;
  }
  return sum;
}

const char* const shipped[] = {"mixtral-8x7b",  "mixtral-8x22b", "deepseek-v3", "qwen3-235b-a22b",
                               "qwen3-30b-a3b", "gpt-oss-120b",  "kimi-k2"};

// Two FLOPs per token and weight of the matrices that it meets: the count of active parameters, which knows nothing of operators. Experts
// get top_k times the tokens of the rank when routing is balanced. Widths of heads and rounding of rows apart there is nothing else.
TEST(ExpertOperators, MultiplyEveryActiveWeightOncePerToken) {
  for (const char* name : shipped) {
    const sim::Job job = job_of(name, 8, "{dp: 8, ep: 8}");
    const Workload& w = job.workload;
    const workloads::BlockProgram layer = workloads::layer_program(w, false, LayerKind::experts);
    const workloads::ExpertLayer experts(w);
    const double flops =
        forward_gemm_flops(layer) + gemm_flops(workloads::operators_of(w, experts.work({Pass::forward}, 0, w.model.layers - 1, 0)));
    workloads::Model one = w.model;  // of one layer alone, without the ends
    one.layers = 1;
    one.vocab = 0;
    one.mtp = 0;
    one.moe->first_dense = 0;
    one.window.reset();
    const double attention =
        6.0 * 4096 * 4096 * one.heads * (one.mla ? one.mla->qk_nope + one.mla->qk_rope + one.mla->v : 2 * one.head_dim);
    const double matrices = workloads::model_flops_per_sequence(one, 4096, false) - attention;
    EXPECT_NEAR(3 * flops, matrices, 1e-9 * matrices) << name;
  }
}

int kernels_of(const std::vector<workloads::Item>& items, const std::string& name) {
  int sum = 0;
  for (const workloads::Item& item : items) {
    const auto* op = std::get_if<workloads::Operator>(&item);
    if (op != nullptr && op->name == name) sum += op->kernels;
  }
  return sum;
}

int kernels_of(const std::vector<workloads::Operator>& operators, const std::string& name) {
  return kernels_of(std::vector<workloads::Item>(operators.begin(), operators.end()), name);
}

// Routing; for the all-to-all both permutations; for interleaved micro-batches the scheduling of attention and router, and of the experts.
TEST(ExpertOperators, AreIssuedWithTheLaunchesOfTheStack) {
  for (const char* overlap : {"{ep: false}", "{ep: true}"}) {
    for (const char* dispatcher : {"alltoall", "hierarchical"}) {
      const sim::Job job =
          job_of("qwen3-30b-a3b", 16, "{pp: 2, dp: 8, ep: 8}", fmt::format("overlap: {}\nmoe: {{dispatcher: {}}}\n", overlap, dispatcher));
      const sim::Software& stack = job.system.software;
      const workloads::BlockProgram layer = workloads::layer_program(job.workload, false, LayerKind::experts);
      const int pairs = job.workload.overlap.ep ? 1 : 0,
                permutes = job.workload.experts.dispatcher == workloads::Dispatcher::alltoall ? 1 : 0;
      const workloads::ExpertLayer experts(job.workload);
      EXPECT_EQ(kernels_of(layer.forward, "routing"), stack.kernels.routing_kernels.forward);
      EXPECT_EQ(kernels_of(layer.backward, "routing"), stack.kernels.routing_kernels.backward);
      EXPECT_EQ(kernels_of(layer.forward, "pairing"), pairs * stack.kernels.pairing_kernels.forward);
      EXPECT_EQ(kernels_of(layer.backward, "pairing"), pairs * stack.kernels.pairing_kernels.backward);
      const auto of_experts = [&](const workloads::RoutedExperts& what) {
        return kernels_of(workloads::operators_of(job.workload, experts.work(what, 0, 0, 0)), "pairing");
      };
      EXPECT_EQ(of_experts({Pass::forward}), pairs * stack.kernels.pairing_kernels.forward);
      EXPECT_EQ(of_experts({Pass::backward_input, true}), pairs * stack.kernels.pairing_kernels.backward);
      for (const char* name : {"permute", "unpermute"}) {
        EXPECT_EQ(kernels_of(layer.forward, name), permutes * stack.kernels.permutation_kernels.forward) << name;
        EXPECT_EQ(kernels_of(layer.backward, name), permutes * stack.kernels.permutation_kernels.backward) << name;
      }
    }
  }
}

// What sorts tokens that DeepEP delivers is launched behind the exchange, where the experts are: it can be in no graph of what lies before,
// and the all-to-all's own sort is one kernel.
TEST(ExpertOperators, SortWhatArrivesWithTheLaunchesOfTheStack) {
  for (const char* dispatcher : {"alltoall", "hierarchical", "allgather"}) {
    const bool exchanges = dispatcher == std::string("alltoall");
    for (const bool many : {false, true}) {
      const sim::Job job = job_of(
          "qwen3-30b-a3b", 8, "{dp: 8, ep: 8}",
          fmt::format(
              "moe: {{dispatcher: {}}}\nsoftware: {{like: megatron-core, experts: {{dispatch_kernels: deepep, sorting_kernels: {}}}}}\n",
              dispatcher, many ? "{forward: 10, backward: 8}" : "{forward: 0, backward: 0}"));
      const workloads::BlockProgram layer = workloads::layer_program(job.workload, false, LayerKind::experts);
      const workloads::ExpertLayer experts(job.workload);
      const auto of_experts = [&](const workloads::RoutedExperts& what, const char* name) {
        return kernels_of(workloads::operators_of(job.workload, experts.work(what, 0, 0, 0)), name);
      };
      for (const char* name : {"sort_tokens", "unsort_tokens"}) {
        EXPECT_EQ(of_experts({Pass::forward}, name), many && !exchanges ? 10 : 1) << dispatcher;
        EXPECT_EQ(of_experts({Pass::backward_input, true}, name), many && !exchanges ? 8 : 1) << dispatcher;
      }
      for (const char* name : {"permute", "unpermute"}) {
        EXPECT_EQ(kernels_of(layer.forward, name), exchanges ? job.system.software.kernels.permutation_kernels.forward : 0) << dispatcher;
        EXPECT_EQ(kernels_of(layer.backward, name), exchanges ? job.system.software.kernels.permutation_kernels.backward : 0) << dispatcher;
      }
    }
  }
}

double bytes_of(const std::vector<workloads::Operator>& operators, const std::string& name) {
  double sum = 0;
  for (const workloads::Operator& op : operators) {
    if (op.name == name) sum += op.bytes;
  }
  return sum;
}

// Each copy reads and writes every pair's state, or what the first product (gate and up) gives for it.
TEST(ExpertOperators, CopyWhatTheStackSays) {
  const sim::Job job = job_of("qwen3-30b-a3b", 8, "{dp: 8, ep: 8}",
                              "software: {like: megatron-core, experts: {pair_copies: {forward: 2, backward: 3.5}, "
                              "product_copies: {forward: 0.5, backward: 4}}}\n");
  const workloads::ExpertLayer experts(job.workload);
  const workloads::Model& model = job.workload.model;
  const workloads::RoutedExperts forward{Pass::forward}, backward{Pass::backward_input, true};
  const double pairs = experts.work(forward, 0, 0, 0).pairs, element = 2;
  const double state = 2 * pairs * model.hidden * element, product = 2 * pairs * 2 * model.moe->ffn * element;
  const auto of = [&](const workloads::RoutedExperts& what, const char* name) {
    return bytes_of(workloads::operators_of(job.workload, experts.work(what, 0, 0, 0)), name);
  };
  EXPECT_DOUBLE_EQ(of(forward, "pair_copies"), 2 * state);
  EXPECT_DOUBLE_EQ(of(backward, "pair_copies"), 3.5 * state);
  EXPECT_DOUBLE_EQ(of(forward, "product_copies"), 0.5 * product);
  EXPECT_DOUBLE_EQ(of(backward, "product_copies"), 4 * product);
  const sim::Job without = job_of("qwen3-30b-a3b", 8, "{dp: 8, ep: 8}");
  const workloads::ExpertLayer plain(without.workload);
  for (const char* name : {"pair_copies", "product_copies"}) {
    EXPECT_EQ(bytes_of(workloads::operators_of(without.workload, plain.work(forward, 0, 0, 0)), name), 0) << name;
  }
}

// A compiler's kernels are not PyTorch's own operators, unless it leaves the experts to these.
TEST(ExpertOperators, CopyByOperatorsOfPyTorchWhereNothingIsCompiled) {
  const auto eager = [](const char* software) {
    const sim::Job job = job_of("qwen3-30b-a3b", 8, "{dp: 8, ep: 8}",
                                fmt::format("software: {{like: {}, experts: {{pair_copies: {{forward: 1, backward: 1}}}}}}\n", software));
    const workloads::ExpertLayer experts(job.workload);
    const workloads::RoutedExperts forward{Pass::forward};
    const auto all = workloads::operators_of(job.workload, experts.work(forward, 0, 0, 0));
    return std::ranges::find(all, "pair_copies", &workloads::Operator::name)->eager;
  };
  EXPECT_TRUE(eager("megatron-core"));
  EXPECT_TRUE(eager("torchtitan-2025"));
  EXPECT_FALSE(eager("torchtitan"));
  EXPECT_FALSE(eager("prime-rl"));
  EXPECT_TRUE(eager("prime-rl-eager"));
}

// Attention and router that one graph holds are one node of autograd: what pairs cost the host there is in no pass. Experts are in no
// graph.
TEST(ExpertOperators, ArePairedForNothingWhereAGraphHoldsAttentionAndRouter) {
  for (const auto& [graphs, captured] : {std::pair{"[moe_router, moe_preprocess]", false}, std::pair{"[attn, moe_router]", false},
                                         std::pair{"[attn, moe_router, moe_preprocess]", true}}) {
    const sim::Job job = job_of("qwen3-30b-a3b", 16, "{pp: 2, dp: 8, ep: 8}",
                                fmt::format("overlap: {{ep: true}}\ncuda_graphs: {}\nsoftware: megatron-core\n", graphs));
    const workloads::BlockProgram layer = workloads::layer_program(job.workload, false, LayerKind::experts);
    int found = 0;
    for (const std::vector<workloads::Item>* items : {&layer.forward, &layer.backward}) {
      for (const workloads::Item& item : *items) {
        const auto* op = std::get_if<workloads::Operator>(&item);
        if (op == nullptr || op->name != "pairing") continue;
        ++found;
        EXPECT_EQ(op->captured, captured) << graphs;
      }
    }
    EXPECT_EQ(found, 2);
  }
}

// Four micro-batches by FSDP2, whose sums lie sharded: experts' over the two ranks that have the same ones, not over all sixteen.
TEST(ExpertOperators, AddGradientsInTheirShardOfFewerRanks) {
  sim::Job job = job_of("qwen3-30b-a3b", 16, "{dp: 16, ep: 8}", "software: torchtitan-2025\noptimizer: {sharding: zero3}\n");
  job.workload.batch.global = 4 * 16 * job.workload.batch.micro;
  const auto added = [&] {
    double bytes = 0;
    for (const workloads::Operator& op :
         workloads::operators_of(job.workload, workloads::ExpertLayer(job.workload).work({Pass::backward_weight}, 0, 0, 0))) {
      if (op.name.ends_with(" gradient accumulation")) bytes += op.bytes;
    }
    return bytes;
  };
  const double sharded = added();
  job.workload.fusions.adopts_gradients = false;
  EXPECT_GT(sharded, 0);
  EXPECT_DOUBLE_EQ(sharded, 0.75 / 2 * added());
}

// A gated MLP has three products of one size; what the third gives is kept, and what comes before it is computed again.
TEST(ExpertOperators, LeaveOutTheProductWhoseOutputIsKept) {
  const auto again = [](const char* recompute) {
    const sim::Job job = job_of("mixtral-8x7b", 8, "{dp: 8, ep: 8}", fmt::format("recompute: {}\n", recompute));
    return gemm_flops(workloads::operators_of(job.workload, workloads::ExpertLayer(job.workload).work({Pass::recompute}, 0, 0, 0)));
  };
  EXPECT_GT(again("full"), 0);
  EXPECT_DOUBLE_EQ(again("{kept: [expert_fc2]}"), again("full") * 2 / 3);
}

// Weights in 8 bits that are cast in each pass are cast again for products that are computed again.
TEST(ExpertOperators, CastNoWeightsAgainForAProductWhoseOutputIsKept) {
  const auto casts_again = [](const char* recompute) {
    sim::Job job = job_of("mixtral-8x7b", 8, "{dp: 8, ep: 8}", fmt::format("recompute: {}\n", recompute));
    job.workload.precision.compute = workloads::DType::fp8;
    job.workload.precision.recipe = workloads::Scaling::tensorwise;
    job.workload.fusions.casts_weights = false;
    std::vector<std::string> names;
    for (const workloads::Operator& op :
         workloads::operators_of(job.workload, workloads::ExpertLayer(job.workload).work({Pass::recompute}, 0, 0, 0))) {
      if (op.name.ends_with(" weight cast")) names.push_back(op.name);
    }
    return names;
  };
  EXPECT_EQ(casts_again("full"), (std::vector<std::string>{"experts_fc1 weight cast", "experts_fc2 weight cast"}));
  EXPECT_EQ(casts_again("{kept: [expert_fc2]}"), std::vector<std::string>{"experts_fc1 weight cast"});
}

TEST(ExpertOperators, HoldTheModelsParametersOverAllRanks) {
  for (const char* name : shipped) {
    for (const char* parallel :
         {"{dp: 8, ep: 8}", "{tp: 2, sp: true, dp: 4, ep: 8, etp: 1}", "{tp: 2, sp: true, dp: 4, ep: 4, etp: 2}", "{dp: 8, ep: 1}"}) {
      const sim::Job job = job_of(name, 8, parallel);
      const Workload& w = job.workload;
      const workloads::BlockProgram layer = workloads::layer_program(w, false, LayerKind::experts);
      const workloads::ParameterCount count = workloads::count_parameters(w.model);
      const double widths = (w.model.gated() ? 3.0 : 2.0) * w.model.moe->ffn;
      const double biases = w.model.biases ? 2.0 * w.model.moe->ffn / w.parallel.etp * w.parallel.etp + w.model.hidden * w.parallel.etp : 0;
      const double experts = w.model.moe->experts * (widths * w.model.hidden + biases);
      EXPECT_NEAR(layer.expert_parameters * w.parallel.ep * w.parallel.etp, experts, 1e-9 * experts) << name << parallel;
      if (w.parallel.tp > 1) continue;  // norms, the router and low ranks are on every tensor-parallel rank
      EXPECT_NEAR(layer.parameters - layer.expert_parameters + experts, count.moe_layer, 1e-9 * count.moe_layer) << name << parallel;
    }
  }
}

// The gradient of a token's weights reads what its experts gave: a stack whose recomputation stops early leaves out their sum alone.
TEST(ExpertOperators, AreComputedAgainWhereRecomputationStopsEarly) {
  for (const char* stack : {"torch-fsdp", "megatron-core"}) {
    const sim::Job job = job_of("mixtral-8x7b", 8, "{dp: 8, ep: 8}", fmt::format("recompute: full\nsoftware: {}\n", stack));
    const workloads::BlockProgram layer = workloads::layer_program(job.workload, true, LayerKind::experts);
    const bool early = std::string_view(stack) == "torch-fsdp";
    EXPECT_EQ(job.workload.recompute.stops_early, early);
    EXPECT_EQ(layer.recompute.size() + (early ? 1 : 0), layer.forward.size()) << stack;
    EXPECT_EQ(kernels_of(layer.recompute, "unpermute") == 0, early) << stack;
  }
}

TEST(ExpertOperators, DispatchEveryPairOnceEachWay) {
  const sim::Job job = job_of("deepseek-v3", 64, "{dp: 64, ep: 64}", tokens_alone);
  const workloads::ExpertLayer experts(job.workload);
  for (const Pass pass : {Pass::forward, Pass::backward_input}) {
    const workloads::ExpertCalls& calls = experts.calls(pass, 0, 10, 0);
    ASSERT_EQ(calls.dispatch.size(), 1U);
    ASSERT_EQ(calls.combine.size(), 1U);
    EXPECT_EQ(calls.dispatch[0].bytes, 4096.0 * 8 * 7168 * 2);
    EXPECT_EQ(calls.combine[0].bytes, 4096.0 * 8 * 7168 * 2);
  }
  // In 8 bits on the way there, with a stack that does so.
  const sim::Job narrow =
      job_of("deepseek-v3", 64, "{dp: 64, ep: 64}", "precision: fp8\nsoftware: {like: custom, experts: {gathers_counts: false}}\n");
  const workloads::ExpertLayer eight(narrow.workload);
  EXPECT_EQ(eight.calls(Pass::forward, 0, 10, 0).dispatch[0].bytes, 4096.0 * 8 * 7168);
  EXPECT_EQ(eight.calls(Pass::forward, 0, 10, 0).combine[0].bytes, 4096.0 * 8 * 7168 * 2);
}

TEST(ExpertOperators, ChunksSplitTheWorkAndLoseNothing) {
  for (const int chunks : {2, 4, 8}) {
    const sim::Job whole = job_of("mixtral-8x7b", 8, "{dp: 8, ep: 8}", tokens_alone);
    const sim::Job cut = job_of("mixtral-8x7b", 8, "{dp: 8, ep: 8}", fmt::format("moe: {{chunks: {}}}\n{}", chunks, tokens_alone));
    const workloads::ExpertLayer a(whole.workload), b(cut.workload);
    const auto flops = [](const sim::Job& job, const workloads::ExpertLayer& layer) {
      return gemm_flops(workloads::operators_of(job.workload, layer.work({Pass::forward}, 0, 0, 0)));
    };
    EXPECT_NEAR(chunks * flops(cut, b), flops(whole, a), 1e-9 * flops(whole, a));
    EXPECT_NEAR(chunks * b.calls(Pass::forward, 0, 0, 0).dispatch[0].bytes, a.calls(Pass::forward, 0, 0, 0).dispatch[0].bytes, 1e-6);
  }
}

// DeepSeek-V3 (arXiv 2412.19437, section 3.2.3) in 16 bits: whole queries and keys of 192, values of 128 for each of 128 heads, and the
// normed low-rank states of 1536 and 512. The shared expert: gate and value of 2048 each and their product. Routed experts: that product.
TEST(ExpertOperators, RecomputedModulesDropTheirTensors) {
  const double tokens = 4096, bytes = 2;
  const auto job = [](const char* recompute) {
    return job_of("deepseek-v3", 64, "{pp: 1, dp: 64, ep: 64}", fmt::format("recompute: {}\n", recompute));
  };
  const auto kept = [&](const char* recompute) {
    return workloads::layer_activation_bytes(job(recompute).workload, false, LayerKind::experts);
  };
  const double all = kept("none");
  const double up = 128 * (192 + 192 + 128) + 1536 + 512;
  EXPECT_NEAR(all - kept("{modules: [mla_up_proj]}"), tokens * bytes * up, 1e-9 * all);
  EXPECT_NEAR(all - kept("{modules: [layernorm]}"), tokens * bytes * 2 * 7168, 1e-9 * all);
  EXPECT_NEAR(all - kept("{modules: [shared_experts]}"), tokens * bytes * 3 * 2048, 1e-9 * all);
  EXPECT_EQ(kept("{modules: [moe_act]}"), all);
  const auto received = [&](const char* recompute) { return workloads::received_activation_bytes(job(recompute).workload, false); };
  EXPECT_EQ(received("none") - received("{modules: [moe_act]}"), bytes * 2048);
  // Of several operators with a gate: what the gate's half became, too.
  const auto eager = [&](const char* recompute) {
    workloads::Workload workload = job(recompute).workload;
    workload.fusions.activation = false;
    return workloads::received_activation_bytes(workload, false);
  };
  EXPECT_EQ(eager("none") - eager("{modules: [moe_act]}"), 2 * bytes * 2048);
}

TEST(ExpertOperators, RecomputedModulesRepeatTheirOperatorsAlone) {
  const workloads::Workload workload =
      job_of("deepseek-v3", 64, "{pp: 1, dp: 64, ep: 64}", "recompute: {modules: [mla_up_proj, moe_act, shared_experts]}\n").workload;
  std::vector<std::string> names;
  for (const workloads::Item& item : workloads::layer_program(workload, false, LayerKind::experts).recompute) {
    names.push_back(std::get<workloads::Operator>(item).name);
  }
  EXPECT_EQ(names, (std::vector<std::string>{"q_norm", "q_up", "kv_norm", "kv_up", "rope", "shared_fc1", "activation", "shared_fc2"}));
  const workloads::ExpertLayer experts(workload, 0);
  workloads::ExpertWork work = experts.work({Pass::backward_input, true}, 0, 3, 0);
  work.again = experts.again(work.what);
  ASSERT_TRUE(work.again);
  const std::vector<workloads::Operator> again = workloads::operators_of(workload, work);
  ASSERT_EQ(again.size(), 1U);
  EXPECT_EQ(again.front().name, "activation");
  EXPECT_EQ(again.front().pass, Pass::recompute);
}

// Dense gradients go over dp x cp, experts' over the ranks that hold the same ones; both are sharded by their own group.
TEST(ExpertRanks, ReplicasOfExpertsAreOtherRanksThanThoseOfDenseParameters) {
  const sim::Job job = job_of("mixtral-8x7b", 32, "{tp: 2, sp: true, dp: 16, ep: 8, etp: 1}", "optimizer: {sharding: zero1}\n");
  const workloads::ReplicaSync sync = workloads::replica_sync(job.workload);
  EXPECT_EQ(sync.ranks, 16);
  EXPECT_EQ(sync.expert_ranks, 4);
  const auto reductions = sync.reductions(workloads::Parameters{.all = 100, .experts = 60});
  ASSERT_EQ(reductions.size(), 2U);
  EXPECT_EQ(reductions[0].group, workloads::GroupKind::dp_cp);
  EXPECT_EQ(reductions[0].bytes, 40 * 4.0);
  EXPECT_EQ(reductions[1].group, workloads::GroupKind::edp);
  EXPECT_EQ(reductions[1].bytes, 60 * 4.0);
  EXPECT_EQ(sync.shard(100, 60), 40.0 / 16 + 60.0 / 4);
}

}  // namespace
}  // namespace rehearse::tests
