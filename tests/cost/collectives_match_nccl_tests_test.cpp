// How far the price of a collective on the shipped clusters is from published tables of nccl-tests: of all their times together, those that
// were fitted and those that were left out (docs/collectives.md has each half). The bounds are the errors, rounded up.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <numeric>
#include <string>

#include "places.hpp"
#include "sim/cost/communication.hpp"

namespace rehearse::sim {
namespace {

using config::Node;
using topology::Protocol;
using workloads::CollectiveKind;

const std::map<std::string, CollectiveKind> measured_kinds{{"all-reduce", CollectiveKind::all_reduce},
                                                           {"all-gather", CollectiveKind::all_gather},
                                                           {"reduce-scatter", CollectiveKind::reduce_scatter}};
const std::vector<std::string> nccl_library{"ring", "tree", "nvls", "nvls-tree", "hierarchical", "direct"};

topology::ClusterSpec shipped_cluster(const std::string& name) {
  return topology::read_cluster(Node::load_file(std::string(REHEARSE_SOURCE_DIR) + "/platforms/clusters/" + name + ".yaml"), name);
}

CallPrice price_on(const topology::ClusterSpec& cluster, CollectiveKind kind, int gpus, double bytes,
                   Protocol protocol = Protocol::automatic, const std::string& algorithm = "auto") {
  workloads::Workload plan;
  plan.parallel.dp = gpus;
  std::vector<int> members(static_cast<std::size_t>(gpus));
  std::iota(members.begin(), members.end(), 0);
  const CommunicationModel model(cluster, plan, algorithm, nccl_library, false, protocol);
  return model.price({"x", kind, workloads::GroupKind::dp_cp, bytes, workloads::Pass::update}, members);
}

CallPrice price_on(const std::string& cluster, CollectiveKind kind, int gpus, double bytes, Protocol protocol = Protocol::automatic,
                   const std::string& algorithm = "auto") {
  return price_on(shipped_cluster(cluster), kind, gpus, bytes, protocol, algorithm);
}

struct TableErrors {
  double sum = 0;
  int number = 0;
  [[nodiscard]] double mean() const { return sum / number; }
};

// The mean error of all tables, of messages of up to 8 MiB (small) and above.
TableErrors table_errors(bool small, Protocol protocol) {
  TableErrors out;
  for (const Node& point : Node::load_file(std::string(REHEARSE_SOURCE_DIR) + "/tests/cost/measured/nccl.yaml").at("points").items()) {
    const auto kind = measured_kinds.find(point.at("op").as_string());
    const double bytes = point.at("bytes").as_number(1, 1e12);
    if (kind == measured_kinds.end() || (bytes <= 8 << 20) != small) continue;
    const CallPrice price =
        price_on(point.at("cluster").as_string(), kind->second, static_cast<int>(point.at("gpus").as_int(2, 1024)), bytes, protocol);
    out.sum += std::abs(price.seconds() * 1e6 / point.at("time_us").as_number(1, 1e9) - 1);
    ++out.number;
  }
  return out;
}

TEST(NcclTables, SmallMessagesAreNearByProtocolsAndFarBySimpleAlone) {
  EXPECT_EQ(table_errors(true, Protocol::automatic).number, 145);
  EXPECT_LT(table_errors(true, Protocol::automatic).mean(), 0.15);
  EXPECT_GT(table_errors(true, Protocol::simple).mean(), 0.9);
}

TableErrors all_to_all_errors(const topology::ClusterSpec& cluster, double least, double most) {
  TableErrors out;
  for (const Node& point : Node::load_file(std::string(REHEARSE_SOURCE_DIR) + "/tests/cost/measured/nccl.yaml").at("points").items()) {
    const double bytes = point.at("bytes").as_number(1, 1e12);
    if (point.at("op").as_string() != "all-to-all" || bytes < least || bytes > most) continue;
    const CallPrice price = price_on(cluster, CollectiveKind::all_to_all, 8, bytes);
    out.sum += std::abs(price.seconds() * 1e6 / point.at("time_us").as_number(1, 1e9) - 1);
    ++out.number;
  }
  return out;
}

// All-to-alls of 8 B200, from 32 MiB on, and at the rate of a ring.
TEST(NcclTables, LargeAllToAllsInsideANodeAreNear) {
  topology::ClusterSpec cluster = shipped_cluster("hgx-b200");
  EXPECT_EQ(all_to_all_errors(cluster, 32 << 20, 1e12).number, 5);
  EXPECT_LT(all_to_all_errors(cluster, 32 << 20, 1e12).mean(), 0.13);
  cluster.intra.exchange_share = 1;
  EXPECT_GT(all_to_all_errors(cluster, 32 << 20, 1e12).mean(), 0.16);
}

// From 256 KiB to 16 MiB, and with the latency of any other call.
TEST(NcclTables, AllToAllsOfMebibytesWaitForTheirMessages) {
  topology::ClusterSpec cluster = shipped_cluster("hgx-b200");
  EXPECT_EQ(all_to_all_errors(cluster, 256 << 10, 16 << 20).number, 6);
  EXPECT_LT(all_to_all_errors(cluster, 256 << 10, 16 << 20).mean(), 0.2);
  cluster.intra.exchange_latency_s.reset();
  EXPECT_GT(all_to_all_errors(cluster, 256 << 10, 16 << 20).mean(), 0.37);
}

TEST(NcclTables, LargeMessagesAreNear) { EXPECT_LT(table_errors(false, Protocol::automatic).mean(), 0.2); }

// NCCL 2.26 on 8 H100: "8B~1MB RING LL, 2MB~16GB NVLS SIMPLE" (NVIDIA/nccl-tests, issue 309).
TEST(NcclTables, TheProtocolIsThatOfTheSize) {
  const auto chosen = [](double bytes) { return price_on("dgx-h100-ndr400", CollectiveKind::all_reduce, 8, bytes); };
  for (const double bytes : {8.0, 65536.0, 1048576.0}) {
    EXPECT_EQ(chosen(bytes).algorithm, "ring") << bytes;
    EXPECT_EQ(chosen(bytes).protocol_name(), "LL") << bytes;
  }
  for (const double bytes : {4194304.0, 67108864.0, 1073741824.0}) EXPECT_EQ(chosen(bytes).protocol_name(), "Simple") << bytes;
  EXPECT_EQ(chosen(67108864.0).algorithm, "nvls");
}

// call, 14 rounds, and 7/4 of the buffer at the protocol's share of 450 GB/s.
TEST(NcclProtocols, ARingOfEightCostsItsCallItsRoundsAndItsBytes) {
  const CallPrice price = price_on("dgx-h100-ndr400", CollectiveKind::all_reduce, 8, 1e6, Protocol::ll, "ring");
  EXPECT_DOUBLE_EQ(price.seconds(), 9.3e-6 + 14 * 1.1e-6 + 1.75e6 / (450e9 * 0.2));
  EXPECT_DOUBLE_EQ(price.intra_bytes, 1.75e6 * (0.813 / 0.2));
}

TEST(NcclProtocols, NoByteCountsForLessThanItsFlagsMake) {
  topology::ClusterSpec cluster = shipped_cluster("dgx-h100-ndr400");
  cluster.intra.efficiency = 0.1;  // a link slower than the protocol's share
  workloads::Workload plan;
  plan.parallel.dp = 8;
  const std::vector<int> members{0, 1, 2, 3, 4, 5, 6, 7};
  const auto overhead = [&](Protocol protocol) {
    return CommunicationModel(cluster, plan, "ring", nccl_library, false, protocol)
        .price({"x", CollectiveKind::all_gather, workloads::GroupKind::dp_cp, 1e6, workloads::Pass::update}, members)
        .scale_up_overhead;
  };
  EXPECT_DOUBLE_EQ(overhead(Protocol::simple), 1);
  EXPECT_DOUBLE_EQ(overhead(Protocol::ll), 2);
  EXPECT_DOUBLE_EQ(overhead(Protocol::ll128), 128.0 / 120);
}

// More never takes less time, and the fastest is no slower than any that is asked for.
TEST(NcclProtocols, TheFastestIsTaken) {
  for (const int gpus : {8, 16, 32}) {
    double before = 0;
    for (std::int64_t size = 8; size < 1'000'000'000; size *= 3) {
      const auto bytes = static_cast<double>(size);
      const double now = price_on("dgx-b200-ndr400", CollectiveKind::all_reduce, gpus, bytes).seconds();
      EXPECT_GE(now, before);
      before = now;
      for (const Protocol protocol : {Protocol::simple, Protocol::ll, Protocol::ll128})
        EXPECT_LE(now, price_on("dgx-b200-ndr400", CollectiveKind::all_reduce, gpus, bytes, protocol).seconds());
    }
  }
}

// RCCL, HCCL, EFA and Omni-Path have no table here.
TEST(NcclProtocols, LinksThatListNoneRunBySimple) {
  for (const char* cluster : {"mi300x-8", "gaudi3-8"})
    EXPECT_EQ(price_on(cluster, CollectiveKind::all_gather, 8, 1024, Protocol::ll).protocol_name(), "Simple");
  EXPECT_EQ(price_on("aws-p4d-a100-40g", CollectiveKind::all_reduce, 16, 1024).protocol_name(), "Simple");
  EXPECT_EQ(price_on("aws-p4d-a100-40g", CollectiveKind::all_reduce, 8, 1024).protocol_name(), "LL");
}

}  // namespace
}  // namespace rehearse::sim
