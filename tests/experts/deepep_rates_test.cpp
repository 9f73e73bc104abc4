// The hierarchical exchange against DeepEP's published rates (measured/deepep.yaml), counted as DeepEP counts: tokens to all nodes (inside
// a node: to all ranks), the own one included, over the time of the exchange. Errors are printed.
#include <gtest/gtest.h>

#include <numeric>

#include "jobs.hpp"
#include "places.hpp"
#include "sim/cost/communication.hpp"
#include "workloads/exchange.hpp"
#include "workloads/expert_layer.hpp"
#include "workloads/rank_grid.hpp"

namespace rehearse::tests {
namespace {

TEST(DeepEP, RatesOfDispatchAndCombine) {
  double across_nodes = 0;
  int points = 0;
  for (const config::Node& row :
       config::Node::load_file(std::string(REHEARSE_SOURCE_DIR) + "/tests/experts/measured/deepep.yaml").items()) {
    const int ep = static_cast<int>(row.at("ep").as_int(2, 1024));
    const std::string text = fmt::format(
        "model: deepseek-v3\ncluster: h800-deepseek\nsoftware: {{like: custom, experts: {{gathers_counts: false}}}}\ngpus: {0}\nparallel: "
        "{{dp: {0}, ep: {0}}}\nprecision: fp8\n"
        "batch: {{global: {0}, micro: 1, sequence: {1}}}\nmoe: {{dispatcher: hierarchical, nodes_per_token: {2}}}\n",
        ep, row.at("tokens").as_int(1, 1 << 20), row.at("top_groups").as_int(1, 64));
    const sim::Job job = sim::read_job(config::Node::load_text(text, "deepep"), "deepep");
    const workloads::ExpertLayer experts(job.workload);
    const workloads::ExpertCalls& calls = experts.calls(workloads::Pass::forward, 0, 10, 0);
    const sim::CommunicationModel model(job.system.cluster, job.workload, "auto");
    const std::vector<int> members = workloads::RankGrid(job.workload.parallel).group(workloads::GroupKind::ep, 0);
    for (const auto& [what, key] : {std::pair{&calls.dispatch[0], "dispatch_gb_s"}, {&calls.combine[0], "combine_gb_s"}}) {
      const double seconds = model.price(*what, members).seconds();
      const workloads::PortLoads loads = model.loads(*what, members);
      const double parts = ep > 8 ? ep / 8.0 : 8.0;
      const double others = ep > 8 ? loads.most_inter() : loads.most_intra();
      const double predicted = others * parts / (parts - 1) / seconds / 1e9, measured = row.at(key).as_number(1, 1e4);
      const double error = predicted / measured - 1;
      std::printf("ep %2d %-14s %6.1f GB/s, measured %5.0f, %+.0f %%\n", ep, key, predicted, measured, 100 * error);
      if (ep >= 32) {
        across_nodes += std::abs(error);
        ++points;
      }
    }
  }
  // Four and eight nodes, where the NICs decide. In one node and two NVLink does, of which DeepEP's kernels reach less than 160 GB/s.
  ASSERT_EQ(points, 4);
  EXPECT_LT(across_nodes / points, 0.10);
}

// Between nodes, by kernels that send by themselves; each way.
TEST(DeepEP, TakesMoreWhereTheHostSendsForIt) {
  const auto seconds = [](int ep, const char* dispatcher, int more_us) {
    const std::string text = fmt::format(
        "model: deepseek-v3\ncluster: {{like: h800-deepseek, nics: {{dispatch_latency: {1} us}}}}\ngpus: {0}\nparallel: {{dp: {0}, ep: "
        "{0}}}\n"
        "batch: {{global: {0}, micro: 1, sequence: 4096}}\nmoe: {{dispatcher: {2}}}\n{3}",
        ep, more_us, dispatcher, tokens_alone);
    const sim::Job job = sim::read_job(config::Node::load_text(text, "job.yaml"), "job");
    const workloads::ExpertCalls calls = workloads::ExpertLayer(job.workload).calls(workloads::Pass::forward, 0, 10, 0);
    const sim::CommunicationModel model(job.system.cluster, job.workload, "auto");
    const std::vector<int> members = workloads::RankGrid(job.workload.parallel).group(workloads::GroupKind::ep, 0);
    return model.price(calls.dispatch.front(), members).seconds() + model.price(calls.combine.front(), members).seconds();
  };
  EXPECT_NEAR(seconds(16, "hierarchical", 500) - seconds(16, "hierarchical", 0), 2 * 500e-6, 1e-12);
  EXPECT_EQ(seconds(8, "hierarchical", 500), seconds(8, "hierarchical", 0));
  EXPECT_EQ(seconds(16, "alltoall", 500), seconds(16, "alltoall", 0));
}

}  // namespace
}  // namespace rehearse::tests
