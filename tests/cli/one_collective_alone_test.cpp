// simulate --collective: what somebody who knows nccl-tests expects of it.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tests/cli/program.hpp"

namespace rehearse::cli {
namespace {

using nlohmann::json;

json collectives_of(const std::string& arguments) {
  const Outcome outcome = run_program("simulate " + arguments + " --json");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  return outcome.code == 0 ? json::parse(outcome.out).at("collectives") : json::array();
}

// A ring of 8 through ports of 450 GB/s x 0.813: busbw at most that; time = 14 x 3.3 us + 14/8 S/B.
TEST(OneCollectiveAlone, ARingInANodeTakesItsFormula) {
  const json one = collectives_of("dgx-h100-ndr400 --gpus 8 --collective all-reduce --size 128MiB --algorithm ring").at(0);
  const double bytes = 128.0 * 1024 * 1024, seconds = 14 * 3.3e-6 + 14.0 / 8 * bytes / (450e9 * 0.813);
  EXPECT_NEAR(one.at("formula_s").get<double>(), seconds, 1e-9 * seconds);
  EXPECT_NEAR(one.at("simulated_s").get<double>(), seconds, 1e-6 * seconds);
  EXPECT_NEAR(one.at("busbw_bytes_per_s").get<double>(), 14.0 / 8 * bytes / seconds, 1e-6 * 450e9);
  EXPECT_EQ(one.at("algorithm"), "ring");
}

// What runs on TPUs has rings over all axes of a torus, which NCCL has not.
TEST(OneCollectiveAlone, OnATorusOfTpusIsXlas) {
  const std::string tpus = "tpu-v5p-512 --gpus 256 --collective all-reduce --size 128MiB";
  EXPECT_EQ(collectives_of(tpus).at(0).at("algorithm"), "torus-rings");
  EXPECT_EQ(collectives_of(tpus + " --set software.step='1 ms'").at(0).at("algorithm"), "torus-rings");
  EXPECT_EQ(collectives_of(tpus + " --set software=megatron-core").at(0).at("algorithm"), "ring");
  EXPECT_NE(collectives_of("dgx-h100-ndr400 --gpus 64 --collective all-reduce --size 1GiB").at(0).at("algorithm"), "torus-rings");
}

// --set reaches into a ready-made cluster, as it does in a job: 8 times the rate of a ring whose messages cost nothing.
TEST(OneCollectiveAlone, IsOfTheClusterAsItIsSet) {
  const std::string ring =
      "dgx-h100-ndr400 --gpus 8 --collective all-reduce --size 1GiB --algorithm ring --set cluster.intra_node.latency='0 us' ";
  const auto seconds = [&](const std::string& more) { return collectives_of(ring + more).at(0).at("formula_s").get<double>(); };
  EXPECT_NEAR(seconds("") / seconds("--set cluster.intra_node.bandwidth='3600 GB/s'"), 8, 1e-9);
}

TEST(OneCollectiveAlone, EveryAlgorithmSimulatedFoldedAndWithAllRanksIsItsFormula) {
  for (const std::string algorithm : {"hierarchical", "tree", "nvls-tree", "halving-doubling"}) {
    for (const std::string ranks : {"folded", "all"}) {
      const json one = collectives_of("dgx-h100-ndr400 --gpus 32 --collective all-reduce --size 1GiB --algorithm " + algorithm +
                                      " --set simulation.ranks=" + ranks)
                           .at(0);
      EXPECT_EQ(one.at("algorithm"), algorithm);
      EXPECT_NEAR(one.at("simulated_s").get<double>() / one.at("formula_s").get<double>(), 1, 1e-6) << algorithm << " " << ranks;
    }
  }
}

// 4 nodes of 8 with a NIC for each GPU: 7 messages over NVLink beside 3 over NICs, which carry what is for other nodes.
TEST(OneCollectiveAlone, AnAllToAllGoesAlongRails) {
  for (const std::string ranks : {"folded", "all"}) {
    const json one = collectives_of("dgx-h100-ndr400 --gpus 32 --collective all-to-all --size 1GiB --set simulation.ranks=" + ranks).at(0);
    EXPECT_EQ(one.at("algorithm"), "pxn");
    EXPECT_NEAR(one.at("simulated_s").get<double>() / one.at("formula_s").get<double>(), 1, 1e-6) << ranks;
    const json pairwise =
        collectives_of("dgx-h100-ndr400 --gpus 32 --collective all-to-all --size 1GiB --algorithm ring --set simulation.ranks=" + ranks)
            .at(0);
    const double bandwidth = 3.0 / 4 * 1024 * 1024 * 1024 / (50e9 * 0.95);  // of ConnectX-7
    EXPECT_NEAR(one.at("formula_s").get<double>(), 7 * 3.3e-6 + 3 * 6.6e-6 + bandwidth, 0.03 * bandwidth) << ranks;
    EXPECT_NEAR(pairwise.at("formula_s").get<double>() - one.at("formula_s").get<double>(), 21 * 6.6e-6 - 7 * 3.3e-6, 1e-9) << ranks;
  }
}

TEST(OneCollectiveAlone, AMeshIsSevenLinks) {
  const json direct = collectives_of("atlas-900-a2 --gpus 8 --collective all-gather --size 1GiB").at(0);
  const json ring = collectives_of("dgx-a100-80g-hdr200 --gpus 8 --collective all-gather --size 1GiB").at(0);
  EXPECT_EQ(direct.at("algorithm"), "direct");
  EXPECT_EQ(ring.at("algorithm"), "ring");
  // 1/8 of the buffer over each of 7 links of 28 GB/s x 0.714
  EXPECT_NEAR(direct.at("simulated_s").get<double>(), 5e-6 + 0x1p30 / 8 / (28e9 * 0.714), 1e-8);
}

TEST(OneCollectiveAlone, ARangeOfSizesDoublesAndLargerOnesAreFaster) {
  const json rows = collectives_of("dgx-h100-ndr400 --gpus 16 --collective all-gather --size 8..1KiB");
  ASSERT_EQ(rows.size(), 8U);
  for (std::size_t i = 1; i < rows.size(); ++i) {
    EXPECT_EQ(rows[i].at("bytes").get<double>(), 2 * rows[i - 1].at("bytes").get<double>());
    EXPECT_GE(rows[i].at("simulated_s").get<double>(), rows[i - 1].at("simulated_s").get<double>());
    EXPECT_GT(rows[i].at("busbw_bytes_per_s").get<double>(), rows[i - 1].at("busbw_bytes_per_s").get<double>());
  }
}

TEST(OneCollectiveAlone, OnTheClusterOfAJobAndIntoAFolder) {
  const TemporaryFolder folder;
  const Outcome outcome =
      run_shell("$rehearse simulate llama2-70b-128-a100 --collective reduce-scatter --size 64MiB -o out", folder.path());
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("reduce-scatter alone, 128 GPUs of"), std::string::npos) << outcome.out;
  const std::string csv = content_of(folder.path() / "out/collectives.csv");
  EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 2) << csv;
}

TEST(OneCollectiveAlone, SaysByWhichProtocolEverywhere) {
  const TemporaryFolder folder;
  const Outcome outcome =
      run_shell("$rehearse simulate dgx-h100-ndr400 --gpus 8 --collective all-reduce --size 64KiB -o out --html", folder.path());
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("ring LL"), std::string::npos) << outcome.out;
  const std::string csv = content_of(folder.path() / "out/collectives.csv"), page = content_of(folder.path() / "out/report.html");
  EXPECT_NE(csv.find(",algorithm,protocol,formula_s,"), std::string::npos) << csv;
  EXPECT_NE(csv.find(",65536,ring,LL,"), std::string::npos) << csv;
  EXPECT_NE(page.find("ring LL"), std::string::npos);
}

TEST(OneCollectiveAlone, WrongInputIsRefused) {
  const auto refused = [](const std::string& arguments) {
    const Outcome outcome = run_program("simulate dgx-h100-ndr400 " + arguments);
    EXPECT_EQ(outcome.code, 2) << arguments;
    return outcome.err;
  };
  EXPECT_NE(refused("--collective all-reduced").find("did you mean 'all-reduce'"), std::string::npos);
  EXPECT_NE(refused("--collective all-reduce --size 8Gi").find("--size '8Gi'"), std::string::npos);
  EXPECT_NE(refused("--collective all-reduce --size 2GiB..1GiB").find("from the larger to the smaller"), std::string::npos);
  EXPECT_NE(refused("--collective all-to-all --gpus 100000").find("--gpus of 8192 at most"), std::string::npos);
  EXPECT_NE(refused("--collective all-reduce --gpus 0").find("--gpus takes a whole number from 1"), std::string::npos);
  EXPECT_NE(refused("--collective all-reduce --algorithm rings").find("did you mean 'ring'"), std::string::npos);
  EXPECT_NE(refused("--collective all-reduce --gpus 16 --algorithm torus-rings").find("--algorithm torus-rings does not serve all-reduce"),
            std::string::npos);
  EXPECT_NE(refused("--size 1GiB").find("--collective"), std::string::npos);
}

}  // namespace
}  // namespace rehearse::cli
