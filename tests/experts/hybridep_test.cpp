// HybridEP: what it sends beside tokens, what it works out of the routing, and its published rates (measured/hybridep.yaml).
#include <gtest/gtest.h>

#include <numeric>
#include <string>
#include <tuple>
#include <vector>

#include "jobs.hpp"
#include "sim/cost/communication.hpp"
#include "workloads/exchange.hpp"
#include "workloads/expert_layer.hpp"
#include "workloads/rank_grid.hpp"
#include "workloads/stage_program.hpp"

namespace rehearse::tests {
namespace {

using workloads::Pass;

// One layer on `ranks` GPUs of a cluster, 4,096 tokens of 2,048 or, as in HybridEP's own benchmark, of 7,168 on each.
sim::Job job_of_a_layer(const std::string& cluster, int ranks, int experts, int hidden, const std::string& kernels,
                        const std::string& dispatcher = "hierarchical") {
  const std::string text = fmt::format(
      "model: {{layers: 1, hidden: {0}, heads: {6}, kv_heads: {6}, ffn: 4096, activation: swiglu, vocab: 0, positions: rope,\n"
      "        moe: {{experts: {1}, top_k: 8, ffn: 1024, first_dense: 0}}}}\n"
      "cluster: {2}\ngpus: {3}\nparallel: {{dp: {3}, ep: {3}}}\nbatch: {{global: {3}, micro: 1, sequence: 4096}}\nprecision: bf16\n"
      "moe: {{dispatcher: {5}}}\nsoftware: {{like: custom, experts: {{gathers_counts: true, dispatch_kernels: {4}}}}}\n",
      hidden, experts, cluster, ranks, kernels, dispatcher, hidden / 128);
  return sim::read_job(config::Node::load_text(text, "layer.yaml"), "layer");
}

std::vector<int> all_of(const sim::Job& job) { return workloads::RankGrid(job.workload.parallel).group(workloads::GroupKind::ep, 0); }

// Most bytes through a port inside a domain, and between domains.
std::pair<double, double> through_ports(const sim::Job& job, Pass pass, bool dispatch) {
  const workloads::ExpertLayer experts(job.workload);
  const workloads::ExpertCalls& calls = experts.calls(pass, 0, 0, 0);
  const sim::CommunicationModel model(job.system.cluster, job.workload, "auto");
  const workloads::PortLoads loads = model.loads(dispatch ? calls.dispatch.back() : calls.combine.front(), all_of(job));
  return {loads.most_intra(), loads.most_inter()};
}

// Beside 2 x 2,048 bytes of a token 4 for each of the 128 experts of one domain, or of the 64 of each of two: with tokens forward, and
// with the gradients of outputs' way back backward.
TEST(HybridEP, SendsWeightsOfAllExpertsOfADomain) {
  for (const int ranks : {8, 16}) {
    const double wider = 1 + 4.0 * 128 * 8 / ranks / (2 * 2048);
    const sim::Job hybrid = job_of_a_layer("dgx-h100-ndr400", ranks, 128, 2048, "hybridep"),
                   deep = job_of_a_layer("dgx-h100-ndr400", ranks, 128, 2048, "deepep");
    for (const Pass pass : {Pass::forward, Pass::backward_input}) {
      for (const bool dispatch : {true, false}) {
        const bool weights = dispatch == (pass == Pass::forward);
        const auto [inside, between] = through_ports(hybrid, pass, dispatch);
        const auto [plain_inside, plain_between] = through_ports(deep, pass, dispatch);
        EXPECT_NEAR(inside / plain_inside, weights ? wider : 1, 1e-12) << ranks << dispatch;
        if (ranks == 8) continue;
        EXPECT_NEAR(between / plain_between, weights ? wider : 1, 1e-12) << ranks << dispatch;
      }
    }
  }
}

// A byte for each token of all 8 ranks and each of 128 experts, of which each rank has 4,096 tokens' to send; read again, once, and places
// written: 4 bytes for each rank and 5 for each expert of a token. Nothing of it backward, by others or where nothing is spread.
TEST(HybridEP, GathersWhichTokenGoesWhere) {
  const auto scanned = [](const sim::Job& job, bool forward) {
    const workloads::BlockProgram layer = workloads::layer_program(job.workload, false, workloads::LayerKind::experts);
    double bytes = 0;
    for (const workloads::Item& item : forward ? layer.forward : layer.backward) {
      const auto* op = std::get_if<workloads::Operator>(&item);
      if (op != nullptr && op->name == "routing_scan") bytes += op->bytes;
    }
    return bytes;
  };
  const sim::Job hybrid = job_of_a_layer("dgx-h100-ndr400", 8, 128, 2048, "hybridep");
  const workloads::ExpertLayer experts(hybrid.workload);
  const workloads::Communication& map = experts.calls(Pass::forward, 0, 0, 0).dispatch.front();
  EXPECT_EQ(map.name, "routing map");
  EXPECT_EQ(map.bytes, 4096.0 * 8 * 128);
  for (int to = 0; to < 8; ++to) EXPECT_EQ(map.exchange->bytes(0, to), 4096.0 * 128);
  const sim::Job chunked = job_of_a_layer("dgx-h100-ndr400", 8, 128, 2048, "hybridep", "hierarchical, chunks: 4");
  const workloads::ExpertLayer pieces(chunked.workload);  // each of 1,024 tokens
  EXPECT_EQ(pieces.calls(Pass::forward, 0, 0, 0).dispatch.front().bytes, 1024.0 * 8 * 128);
  EXPECT_EQ(pieces.calls(Pass::forward, 0, 0, 0).dispatch.front().exchange->bytes(0, 7), 1024.0 * 128);
  EXPECT_EQ(scanned(hybrid, true), 4096.0 * (8 * 128 + 8 * 4 + 128 * 5));
  EXPECT_EQ(scanned(hybrid, false), 0);
  EXPECT_EQ(scanned(job_of_a_layer("dgx-h100-ndr400", 8, 128, 2048, "deepep"), true), 0);
  EXPECT_EQ(scanned(job_of_a_layer("dgx-h100-ndr400", 8, 128, 2048, "hybridep", "alltoall"), true), 0);
  EXPECT_EQ(scanned(job_of_a_layer("dgx-h100-ndr400", 1, 128, 2048, "hybridep"), true), 0);
}

// Between domains NCCL gathers it: what a rank has goes into each other domain once, over its NIC, and on to all there over the scale-up
// fabric, as in a ring on as many channels as a domain has NICs; not once to each rank over the network.
TEST(HybridEP, GathersTheMapOnceIntoEachDomain) {
  const double own = 4096.0 * 128;
  for (const auto& [ranks, inside, between] : {std::tuple{8, 7.0, 0.0}, {16, 14.0, 1.0}, {32, 28.0, 3.0}}) {
    const sim::Job job = job_of_a_layer("dgx-h100-ndr400", ranks, 128, 2048, "hybridep");
    const workloads::ExpertLayer experts(job.workload);
    const sim::CommunicationModel model(job.system.cluster, job.workload, "auto");
    const workloads::PortLoads loads = model.loads(experts.calls(Pass::forward, 0, 0, 0).dispatch.front(), all_of(job));
    EXPECT_NEAR(loads.most_intra(), inside * own, 1e-9 * own) << ranks;
    EXPECT_NEAR(loads.most_inter(), between * own, 1e-9 * own) << ranks;
  }
}

// What was dispatched is taken from memory: nothing is sent, and nobody asks where to.
TEST(HybridEP, ReadsNoRoutingAgainWhereNothingIsSent) {
  for (const bool replays : {true, false}) {
    sim::Job job = job_of_a_layer("dgx-h100-ndr400", 8, 128, 2048, "hybridep");
    job.workload.fusions.replays_dispatch = replays;
    int scans = 0;
    for (const workloads::Item& item : workloads::layer_program(job.workload, true, workloads::LayerKind::experts).recompute) {
      const auto* op = std::get_if<workloads::Operator>(&item);
      scans += op != nullptr && op->name == "routing_scan" ? 1 : 0;
    }
    EXPECT_EQ(scans, replays ? 0 : 1);
  }
}

// Called from PyTorch, with the copy of what arrives or leaves that Megatron-Core's sorts take the place of: read and written at the 5.46
// TB/s that DeepEP's pull request 605 prints for such copies on GB200. Without what each member of a domain costs the combine of 36 ranks
// would be 19 % too fast.
TEST(HybridEP, RatesCalledFromPyTorch) {
  std::vector<double> errors;
  for (const config::Node& row :
       config::Node::load_file(std::string(REHEARSE_SOURCE_DIR) + "/tests/experts/measured/hybridep.yaml").items()) {
    const int ranks = static_cast<int>(row.at("ranks").as_int(2, 72));
    const sim::Job job = job_of_a_layer("gb200-nvl72", ranks, 8 * ranks, 7168, "hybridep");
    const double arrives = ranks * 4096.0 * (1 - workloads::missed(1.0 / ranks, 8, 8 * ranks)) * 2 * 7168;
    const workloads::ExpertLayer experts(job.workload);
    const workloads::ExpertCalls& calls = experts.calls(Pass::forward, 0, 0, 0);
    const sim::CommunicationModel model(job.system.cluster, job.workload, "auto");
    for (const auto& [what, key] : {std::pair{&calls.dispatch.back(), "dispatch_gb_s"}, {&calls.combine.front(), "combine_gb_s"}}) {
      const double seconds = model.price(*what, all_of(job)).seconds() + 2 * arrives / 5.46e12;
      const double predicted = arrives / seconds / 1e9, measured = row.at(key).as_number(1, 1e4);
      errors.push_back(std::abs(predicted / measured - 1));
      std::printf("%2d ranks %-14s %6.1f GB/s, measured %6.1f, %+.0f %%\n", ranks, key, predicted, measured,
                  100 * (predicted / measured - 1));
      EXPECT_LT(errors.back(), 0.09) << ranks << key;
    }
  }
  ASSERT_EQ(errors.size(), 10U);
  EXPECT_LT(std::accumulate(errors.begin(), errors.end(), 0.0) / 10, 0.05);
}

}  // namespace
}  // namespace rehearse::tests
