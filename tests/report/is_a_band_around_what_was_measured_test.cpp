// Expected memory is around the number that was counted where the band was measured.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "sim/api/prediction.hpp"
#include "sim/report/expected_band.hpp"
#include "tests/report/hand_made.hpp"

namespace rehearse::sim {
namespace {

Job banded_job(const std::string& software) {
  return read_job(config::Node::load_text(
                      "model: llama2-7b\ncluster: dgx-h100-ndr400\ngpus: 8\nparallel: {tp: 2, sp: true}\nbatch: {global: 8, micro: 1, "
                      "sequence: 4096}\nsoftware: " +
                          software + "\n",
                      "job.yaml"),
                  "job");
}

TEST(BandOfMemory, IsAroundWhatWasCounted) {
  for (const std::string software : {"nanotron", "megatron-core"}) {
    const Job job = banded_job(software);
    const ExpectedBands bands = expected_bands(job);
    ASSERT_TRUE(bands.peak) << software;
    EXPECT_EQ(bands.counter, software == "nanotron" ? MemoryCounter::reserved : MemoryCounter::allocated);
    const Report report = prediction(job, 0);
    double most = 0;
    for (const RankMemory& rank : steps_of(report).front()->memory.ranks)
      most = std::max(most, rank.tensor_bytes() + (software == "nanotron" ? rank.cached_bytes : 0));
    const nlohmann::json result = nlohmann::json::parse(written("json", report)).at("results").at("analytic");
    const nlohmann::json& expected = result.at("expected").at("memory_bytes");
    EXPECT_EQ(expected.at("counter"), memory_counters().of(bands.counter));
    EXPECT_NEAR(expected.at("low").get<double>(), bands.peak->low * most, 1e-9 * most);
    EXPECT_NEAR(expected.at("high").get<double>(), bands.peak->high * most, 1e-9 * most);
  }
}

// What the job changes of a stack is not what it keeps: the same rows. A stack that nobody measured needs as much as any.
TEST(BandOfMemory, OfAChangedStackAndOfAnUnknownOne) {
  const MeasuredErrors errors;
  const MostNeed nanotron = errors.most_need(banded_job("nanotron"));
  EXPECT_GT(nanotron.factor, 1);
  EXPECT_NE(nanotron.basis.find("nanotron"), std::string::npos) << nanotron.basis;
  EXPECT_EQ(errors.most_need(banded_job("{like: nanotron, flash: 2}")).factor, nanotron.factor);
  const MostNeed unknown = errors.most_need(banded_job("torch-fsdp"));
  EXPECT_GE(unknown.factor, nanotron.factor);
  EXPECT_NE(unknown.basis.find("other stacks"), std::string::npos) << unknown.basis;
}

// A stack without measurements that a measured one is like keeps what that one keeps.
TEST(BandOfMemory, OfAStackLikeAMeasuredOne) {
  const MeasuredErrors errors;
  const MostNeed measured = errors.most_need(banded_job("deepspeed-3d")), like = errors.most_need(banded_job("megatron-deepspeed-2022"));
  EXPECT_EQ(like.factor, measured.factor);
  EXPECT_EQ(like.half, measured.half);
  EXPECT_EQ(like.basis, measured.basis);
}

// Log-normal: a half where half of the runs needed all of the memory, nine tenths where nine in ten did, and as far on the other side a
// tenth.
TEST(BandOfMemory, TheChanceToFitFollowsFromIt) {
  const MostNeed most{1.2, 1.05, ""};
  EXPECT_NEAR(most.chance(1 / 1.05), 0.5, 1e-12);
  EXPECT_NEAR(most.chance(1 / 1.2), 0.9, 1e-4);
  EXPECT_NEAR(most.chance(1.2 / (1.05 * 1.05)), 0.1, 1e-4);
  const MostNeed nobody_knows;
  EXPECT_EQ(nobody_knows.chance(1), 1);
  EXPECT_EQ(nobody_knows.chance(1.01), 0);
}

}  // namespace
}  // namespace rehearse::sim
