// A cache that one side writes and the other reads otherwise: on which side it is made to fit, and what that takes.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "config/node.hpp"
#include "deployments.hpp"
#include "sim/serving/deployment.hpp"

namespace rehearse::tests {
namespace {

sim::TransferLane lane_of(const std::string& prefill, const std::string& decode, const std::string& transfer,
                          const std::string& decode_cluster = "h20-roce-4x400") {
  const std::string text = fmt::format(
      "model: llama3-8b\ncluster: {{parts: {{rich: {{cluster: dgx-h100-ndr400}}, wide: {{cluster: {}}}}}}}\nsoftware: vllm\nserving:\n"
      "  pools:\n    p: {{role: prefill, part: rich, {}}}\n    d: {{role: decode, part: wide, {}}}\n  transfer: {{{}}}\n"
      "  load: {{arrivals: {{poisson: 1 /s}}, input: 1000, output: 10, requests: 10}}\n",
      decode_cluster, prefill, decode, transfer);
  const sim::ServingJob job = sim::read_serving_job(config::Node::load_text(text, "job.yaml"), "job");
  return sim::transfer_lane(job, 0, 1);
}

constexpr const char* known_memory = "dgx-h100-ndr400";
constexpr double all_layers_bytes = 131'072;  // of a token of Llama 3 8B in 16 bits

// A transposing kernel reads and writes the cache: on the side that is asked for, on the faster one by itself (an H20's memory).
TEST(ACacheIsMadeToFit, on_the_side_that_is_asked_for) {
  const auto lane = [](const std::string& align) { return lane_of("kv: {layout: nhd}", "kv: {layout: hnd}", align); };
  const sim::TransferLane sender = lane("align: sender"), receiver = lane("align: receiver"), fastest = lane("align: auto");
  EXPECT_GT(sender.sender_s_per_token, 0);
  EXPECT_EQ(sender.receiver_s_per_token, 0);
  EXPECT_EQ(receiver.sender_s_per_token, 0);
  EXPECT_LT(receiver.receiver_s_per_token, sender.sender_s_per_token);
  EXPECT_EQ(fastest.receiver_s_per_token, receiver.receiver_s_per_token);
  EXPECT_EQ(fastest.sender_s_per_token, 0);
  ASSERT_EQ(sender.alignment.size(), 1U);
  EXPECT_EQ(sender.alignment[0].sender_bytes_per_token, 2 * all_layers_bytes);
  EXPECT_EQ(text_of(sender.alignment[0]),
            "pages of nhd are made pages of hnd, before it is sent (256 KiB of memory traffic a token on each GPU of the sender)");
}

// Nobody finds a faster way than the one that is chosen, whatever differs.
TEST(ACacheIsMadeToFit, where_it_takes_the_least) {
  int differ = 0;
  for (const char* prefill : {"parallel: {tp: 1}", "parallel: {tp: 4}, kv: {page: 24}", "parallel: {tp: 2}, kv: {layout: hnd}"}) {
    for (const char* decode : {"parallel: {tp: 2}", "parallel: {tp: 4}, kv: {page: 32}", "parallel: {tp: 1}, kv: {layout: hnd}"}) {
      const auto seconds = [&](const char* align) {
        const sim::TransferLane lane = lane_of(prefill, decode, align);
        return lane.sender_s_per_token + lane.receiver_s_per_token;
      };
      const double fastest = seconds("align: auto");
      for (const char* align : {"align: sender", "align: receiver"}) EXPECT_LE(fastest, seconds(align)) << prefill << " " << decode;
      differ += seconds("align: sender") > seconds("align: receiver") ? 1 : 0;
    }
  }
  EXPECT_GT(differ, 3);
}

// 16 bits made 8 before they are sent are half as many on the wire; behind it the receiver reads b and writes b / 2. The other way round
// what is widened before it is sent is twice as much.
TEST(ACacheIsMadeToFit, as_small_as_it_is_on_the_wire) {
  const auto lane = [](const char* from, const char* to, const char* align) {
    return lane_of(fmt::format("precision: {{kv: {}}}", from), fmt::format("precision: {{kv: {}}}", to), align);
  };
  EXPECT_EQ(lane("bf16", "fp8", "align: auto").wire_share, 0.5);
  EXPECT_EQ(lane("bf16", "fp8", "align: sender").wire_share, 0.5);
  EXPECT_EQ(lane("bf16", "fp8", "align: receiver").wire_share, 1);
  EXPECT_EQ(lane("fp8", "bf16", "align: auto").wire_share, 1);
  EXPECT_EQ(lane("fp8", "bf16", "align: sender").wire_share, 2);
  EXPECT_EQ(lane("bf16", "fp8", "align: receiver").alignment[0].receiver_bytes_per_token, 1.5 * all_layers_bytes);
  EXPECT_EQ(lane("bf16", "fp8", "align: sender").alignment[0].sender_bytes_per_token, 1.5 * all_layers_bytes);
}

// In the memory of the receiver's host, which its two GPUs share: 2 b / (490 GB/s / 2). A page is never made to fit where it was written.
TEST(ACacheIsMadeToFit, in_the_hosts_memory) {
  const sim::TransferLane host = lane_of("parallel: {tp: 2}, kv: {layout: nhd}", "parallel: {tp: 2}, kv: {layout: hnd}",
                                         "path: host-staged, align: host", known_memory);
  EXPECT_EQ(host.sender_s_per_token, 0);
  EXPECT_NEAR(host.receiver_s_per_token, 2 * (all_layers_bytes / 2) / (490e9 / 2), 1e-15);
  const sim::TransferLane page = lane_of("kv: {page: 24}", "kv: {page: 32}", "align: sender");
  EXPECT_EQ(page.sender_s_per_token, 0);
  EXPECT_GT(page.receiver_s_per_token, 0);
}

TEST(ACacheIsMadeToFit, where_that_can_be) {
  const auto refusal = [](const char* transfer, const char* cluster) {
    try {
      static_cast<void>(lane_of("kv: {layout: nhd}", "kv: {layout: hnd}", transfer, cluster));
    } catch (const config::InputError& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  const std::string direct = refusal("align: host", known_memory), unknown = refusal("path: host-staged, align: host", "h20-roce-4x400");
  EXPECT_NE(direct.find("job.yaml:8:21"), std::string::npos) << direct;
  EXPECT_NE(direct.find("caches do not go through the hosts' memory"), std::string::npos) << direct;
  EXPECT_NE(unknown.find("does not say how fast its hosts' memory is"), std::string::npos) << unknown;
  EXPECT_NE(refusal("align: somewhere", known_memory).find("align cannot be 'somewhere'"), std::string::npos);
}

}  // namespace
}  // namespace rehearse::tests
