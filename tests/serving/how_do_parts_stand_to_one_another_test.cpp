// Parts of a cluster: the network of each pair of them, and where instances stand in one.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include "sim/serving/deployment.hpp"
#include "sim/serving/formula.hpp"
#include "sim/serving/network_transfers.hpp"
#include "sim/serving/placement.hpp"

namespace rehearse::tests {
namespace {

// Prompts on a and on b, decoded on c.
std::string three_parts(const std::string& between, const std::string& place = "pack") {
  return fmt::format(
      "model: llama3-8b\n"
      "cluster:\n"
      "  parts: {{a: {{cluster: dgx-h100-ndr400, nodes: 2}}, b: {{cluster: dgx-h100-ndr400, nodes: 2}}, c: {{cluster: dgx-h100-ndr400, "
      "nodes: 3}}}}\n"
      "  between: {}\n"
      "software: vllm\n"
      "serving:\n"
      "  pools:\n"
      "    near: {{role: prefill, part: a}}\n"
      "    far: {{role: prefill, part: b}}\n"
      "    d: {{role: decode, part: c, instances: 3, place: {}, parallel: {{tp: 2}}}}\n"
      "  load: {{arrivals: {{poisson: 1 /s}}, input: 4000, output: 20, requests: 400}}\n",
      between, place);
}

sim::ServingJob parts_job(const std::string& text) { return sim::read_serving_job(config::Node::load_text(text, "job.yaml"), "job"); }

std::string parts_refusal(const std::string& between, const std::string& place = "pack") {
  try {
    static_cast<void>(parts_job(three_parts(between, place)));
  } catch (const config::InputError& error) {
    return error.what();
  }
  return "accepted";
}

// A cache of 4,000 tokens is 524 MB: over 10 Gbit/s 0.42 s (tokens in whole pages), over 100 Gbit/s a tenth of that beside the starts.
TEST(PartsOfACluster, are_joined_pair_by_pair) {
  const sim::ServingJob job =
      parts_job(three_parts("[{parts: [a, c], bandwidth: 100 Gbps}, {parts: [c, b], bandwidth: 10 Gbps, latency: 8 us}]"));
  const sim::NetworkTransfers transfers(job);
  const double near_s = transfers.alone_s(4000, 0), far_s = transfers.alone_s(4000, 1);
  EXPECT_NEAR(far_s - near_s, 4000 * 131'072.0 * (1 / 1.25e9 - 1 / 12.5e9) / transfers.lanes()[1].line_share, 1e-3);
  const sim::Deployment deployment = sim::deploy(job);
  const sim::ServingSetup setup = sim::setup_of(job, deployment);
  const sim::ServingResult run = sim::result_of(job, setup, simulate_serving(setup));
  const sim::ServingResult formula = predict_serving(job, deployment, 4000).result;
  EXPECT_NEAR(formula.kv_transfer_s / run.kv_transfer_s, 1, 0.05);
}

// Of a pair that is not named the ports are what there is; one network for all is as a list of all pairs.
TEST(PartsOfACluster, are_joined_by_their_ports_where_nothing_is_said) {
  const sim::ServingJob job = parts_job(three_parts("[{parts: [a, b], bandwidth: 1 Gbps}]"));
  const sim::NetworkTransfers transfers(job);
  EXPECT_NEAR(transfers.alone_s(4000, 0), transfers.alone_s(4000, 1), 1e-12);
  const sim::ServingJob all = parts_job(three_parts("{bandwidth: 10 Gbps}")),
                        each = parts_job(three_parts("[{parts: [a, c], bandwidth: 10 Gbps}, {parts: [b, c], bandwidth: 10 Gbps}]"));
  EXPECT_EQ(sim::NetworkTransfers(all).alone_s(4000, 1), sim::NetworkTransfers(each).alone_s(4000, 1));
}

// What crosses from a, and where it is said to be more than the ports carry: those of the nodes on which instances stand, 8 of 50 GB/s
// each.
TEST(PartsOfACluster, are_joined_by_the_ports_of_their_nodes) {
  const auto crossing = [](const std::string& place) {
    std::string text = three_parts("[{parts: [a, b], bandwidth: 1 Gbps}]", place);
    text.replace(text.find("near: {role: prefill, part: a"), 29, "near: {role: prefill, part: a, instances: 2, place: " + place);
    for (const sim::TransferLink& link : sim::NetworkTransfers(parts_job(text)).links()) {
      if (link.part.empty() && link.from == "a") return link.bytes_per_s;
    }
    return 0.0;
  };
  EXPECT_NEAR(crossing("spread") / crossing("pack"), 2, 1e-9);
  const auto wide = [](const std::string& place) {
    const std::vector<std::string> notes = parts_job(three_parts("{bandwidth: 5 Tbps, efficiency: 1}", place)).notes;
    return std::ranges::count_if(notes,
                                 [](const std::string& note) { return note.find("the network ports of part c") != std::string::npos; });
  };
  EXPECT_EQ(wide("pack"), 1);
  EXPECT_EQ(wide("spread"), 0);
}

TEST(PartsOfACluster, are_refused_where_they_do_not_fit) {
  const auto expect = [](const std::string& message, const char* place, const char* why) {
    EXPECT_NE(message.find(place), std::string::npos) << message;
    EXPECT_NE(message.find(why), std::string::npos) << message;
  };
  expect(parts_refusal("[{parts: [a, d], bandwidth: 1 Gbps}]"), "job.yaml:4:25", "no part 'd' in the cluster");
  expect(parts_refusal("[{parts: [a, a], bandwidth: 1 Gbps}]"), "job.yaml:4:25", "a part is not joined to itself");
  expect(parts_refusal("[{parts: [a], bandwidth: 1 Gbps}]"), "job.yaml:4:", "a network joins two parts");
  expect(parts_refusal("[{parts: [a, b], bandwidth: 1 Gbps}, {parts: [b, a], bandwidth: 2 Gbps}]"), "job.yaml:4:", "joined twice");
  expect(parts_refusal("[{parts: [a, b]}]"), "job.yaml:4:", "bandwidth");
  expect(parts_refusal("{bandwidth: 1 Gbps}", "apart"), "job.yaml:10:", "place cannot be 'apart'");
}

// Three instances of two GPUs on three nodes of eight, or all on one.
TEST(InstancesOfAPool, stand_on_nodes_of_their_own_when_spread) {
  EXPECT_EQ(sim::places_of(parts_job(three_parts("{bandwidth: 1 Tbps}")))[2], (std::vector<int>{0, 2, 4}));
  EXPECT_EQ(sim::places_of(parts_job(three_parts("{bandwidth: 1 Tbps}", "spread")))[2], (std::vector<int>{0, 8, 16}));
  std::string four = three_parts("{bandwidth: 1 Tbps}", "spread");
  four.replace(four.find("instances: 3"), 12, "instances: 4");
  try {
    static_cast<void>(parts_job(four));
    ADD_FAILURE() << "four instances on three nodes";
  } catch (const config::InputError& error) {
    EXPECT_NE(std::string(error.what()).find("the pools take 26 GPUs, and dgx-h100-ndr400 has 24"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace rehearse::tests
