// The hierarchical exchange against DeepEP's published rates (measured/deepep.yaml), counted as DeepEP counts: tokens to all nodes (inside
// a node: to all ranks), the own one included, over the time of the exchange. Errors are printed.
#include <gtest/gtest.h>

#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "jobs.hpp"
#include "places.hpp"
#include "sim/cost/communication.hpp"
#include "workloads/exchange.hpp"
#include "workloads/expert_layer.hpp"
#include "workloads/rank_grid.hpp"

namespace rehearse::tests {
namespace {

TEST(DeepEP, RatesOfDispatchAndCombine) {
  const std::map<std::string, std::string> clusters{{"h800", "h800-deepseek"}, {"b200", "hgx-b200"}};
  std::map<std::string, std::vector<double>> errors;  // of H800 between nodes, of B200 inside one
  for (const config::Node& row :
       config::Node::load_file(std::string(REHEARSE_SOURCE_DIR) + "/tests/experts/measured/deepep.yaml").items()) {
    const int ep = static_cast<int>(row.at("ep").as_int(2, 1024));
    const std::string gpu = row.at("gpu").as_string();
    const std::string text = fmt::format(
        "model: deepseek-v3\ncluster: {3}\nsoftware: {{like: custom, experts: {{gathers_counts: false}}}}\ngpus: {0}\nparallel: "
        "{{dp: {0}, ep: {0}}}\nprecision: {4}\n"
        "batch: {{global: {0}, micro: 1, sequence: {1}}}\nmoe: {{dispatcher: hierarchical, nodes_per_token: {2}}}\n",
        ep, row.at("tokens").as_int(1, 1 << 20), row.at("top_groups").as_int(1, 64), clusters.at(gpu),
        row.at("dispatch_dtype").as_string());
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
      std::printf("%s ep %2d %-14s %6.1f GB/s, measured %5.0f, %+.0f %%\n", gpu.c_str(), ep, key, predicted, measured, 100 * error);
      if (ep >= 32 || gpu == "b200") errors[gpu].push_back(std::abs(error));
    }
  }
  // H800: four and eight nodes, where the NICs decide. In one node and two NVLink does, of which DeepEP's kernels reach less than 160 GB/s.
  for (const auto& [gpu, all] : errors) {
    ASSERT_EQ(all.size(), 4) << gpu;
    EXPECT_LT(std::accumulate(all.begin(), all.end(), 0.0) / 4, 0.10) << gpu;
  }
  EXPECT_EQ(errors.size(), 2);
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
