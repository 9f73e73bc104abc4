// Expected memory is around the number that was counted where the band was measured.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

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
    const ExpectedBands bands = MeasuredErrors().bands(job, {});
    ASSERT_FALSE(bands.peaks.empty()) << software;
    const ExpectedPeak& peak = bands.peaks.front();
    EXPECT_EQ(peak.counter, software == "nanotron" ? MemoryCounter::reserved : MemoryCounter::allocated);
    const Report report = prediction(job, 0);
    double most = 0, room = 0;
    for (const RankMemory& rank : steps_of(report).front()->memory.ranks) {
      most = std::max(most, rank.tensor_bytes() + (software == "nanotron" ? rank.cached_bytes : 0));
      room = std::max(room, rank.capacity_bytes - rank.at_peak[MemoryUse::framework]);
    }
    const nlohmann::json result = nlohmann::json::parse(written("json", report)).at("results").at("analytic");
    const nlohmann::json& expected = result.at("expected").at("memory_bytes");
    EXPECT_EQ(expected.at("counter"), memory_counters().of(peak.counter));
    EXPECT_NEAR(expected.at("low").get<double>(), peak.band.low * most, 1e-9 * most);
    EXPECT_NEAR(expected.at("high").get<double>(), std::min(peak.band.high * most, room), 1e-9 * most);
  }
}

// Allocated and reserved, each around its own, where a stack has both.
TEST(BandOfMemory, IsOfEachCounter) {
  const nlohmann::json result =
      nlohmann::json::parse(written("json", prediction(banded_job("deepspeed-2025"), 0))).at("results").at("analytic");
  std::vector<std::string> counters;
  for (const nlohmann::json& peak : result.at("expected").at("peaks")) {
    counters.push_back(peak.at("counter"));
    EXPECT_LT(peak.at("low").get<double>(), peak.at("high").get<double>());
  }
  EXPECT_EQ(counters, (std::vector<std::string>{"allocated", "reserved"}));
}

// Of a job that fits, no more than a GPU has room for beside what is no tensor; of one that does not, all that it would need.
TEST(BandOfMemory, EndsWhereTheGpuDoes) {
  constexpr double gib = 1024.0 * 1024 * 1024;
  MemoryResult memory;
  RankMemory rank;
  rank.at_peak[MemoryUse::weights] = 70 * gib;
  rank.at_peak[MemoryUse::framework] = 2 * gib;
  rank.capacity_bytes = 79 * gib;
  memory.ranks = {rank};
  const auto counted = [&](double high, MemoryCounter counter = MemoryCounter::allocated) {
    return peak_range(ExpectedBands(), {{0.9, high}, counter, "runs"}, memory);
  };
  const PeakRange range = counted(1.2);
  EXPECT_DOUBLE_EQ(range.low_bytes / gib, 63);
  EXPECT_DOUBLE_EQ(range.high_bytes / gib, 77);
  EXPECT_TRUE(range.cut);
  const PeakRange device = counted(1.2, MemoryCounter::nvidia_smi);
  EXPECT_DOUBLE_EQ(device.high_bytes / gib, 79);
  const PeakRange inside = counted(1.05);
  EXPECT_DOUBLE_EQ(inside.high_bytes / gib, 73.5);
  EXPECT_FALSE(inside.cut);
  memory.ranks.front().capacity_bytes = 71 * gib;
  const PeakRange needed = counted(1.2);
  EXPECT_DOUBLE_EQ(needed.high_bytes / gib, 84);
  EXPECT_FALSE(needed.cut);
}

// Of a job that is said not to fit the band begins above the GPU's memory where it fits one time in ten or less, and no higher than that
// memory where it fits more often: four measurements in five lie in the band, and one in ten below it.
TEST(BandOfMemory, BeginsWhereTheVerdictLetsIt) {
  constexpr double gib = 1024.0 * 1024 * 1024;
  MemoryResult memory;
  RankMemory rank;
  rank.at_peak[MemoryUse::weights] = 88 * gib;
  rank.at_peak[MemoryUse::framework] = 2 * gib;
  rank.capacity_bytes = 79 * gib;
  memory.ranks = {rank};
  const ExpectedPeak peak{{0.95, 1.05}, MemoryCounter::allocated, "runs"};
  ExpectedBands bands;
  bands.share = 0.8;
  const auto begins = [&](const std::optional<ChanceToFit>& fits) {
    bands.fits = fits;
    const PeakRange range = peak_range(bands, peak, memory);
    EXPECT_DOUBLE_EQ(range.high_bytes / gib, 92.4);
    EXPECT_FALSE(range.cut);
    return range.low_bytes / gib;
  };
  EXPECT_DOUBLE_EQ(begins(ChanceToFit{0.32, "runs"}), 77);
  EXPECT_DOUBLE_EQ(begins(ChanceToFit{0.09, "runs"}), 83.6);
  EXPECT_DOUBLE_EQ(begins(std::nullopt), 83.6);
}

// What people and programs read of it.
TEST(BandOfMemory, SaysThatItEndsThere) {
  const Report report = prediction(banded_job("nanotron"), 0);
  const StepResult& result = *steps_of(report).front();
  ASSERT_TRUE(result.memory.fits());
  const ExpectedPeak& peak = report.get<ExpectedBands>().peaks.front();
  const PeakRange range = peak_range(report.get<ExpectedBands>(), peak, result.memory);
  ASSERT_TRUE(range.cut);
  EXPECT_LT(range.high_bytes, peak.band.high * counted_bytes(result.memory, peak.counter));
  EXPECT_NE(written("console", report).find(fmt::format(" to all of {:.1f} GiB (", range.high_bytes / (1024.0 * 1024 * 1024))),
            std::string::npos);
  const nlohmann::json peaks = nlohmann::json::parse(written("json", report)).at("results").at("analytic").at("expected").at("peaks");
  EXPECT_EQ(peaks[0].at("high").get<double>(), range.high_bytes);
  EXPECT_TRUE(peaks[0].at("cut").get<bool>());
}

// Fuller is less sure, and memory to spare is as sure as one run in a hundred lets it be.
TEST(Verdict, SaysHowSureItIs) {
  double last = 1;
  for (const int layers : {4, 24, 28, 32, 60}) {
    Job job = read_job(
        config::Node::load_text(fmt::format("model: {{like: llama2-7b, layers: {}}}\ncluster: dgx-h100-ndr400\ngpus: 8\nparallel: "
                                            "{{tp: 2, sp: true}}\nbatch: {{global: 8, micro: 1, sequence: 4096}}\nsoftware: nanotron\n",
                                            layers),
                                "job.yaml"),
        "job");
    const Report report = prediction(job, 0);
    const ExpectedBands& bands = report.get<ExpectedBands>();
    ASSERT_TRUE(bands.fits);
    EXPECT_LE(bands.fits->chance, last) << layers;
    EXPECT_TRUE(layers != 4 || std::abs(bands.fits->chance - 0.99) < 1e-6) << bands.fits->chance;
    EXPECT_TRUE(layers != 60 || bands.fits->chance < 0.02) << bands.fits->chance;
    last = bands.fits->chance;
    EXPECT_NE(written("console", report).find(fmt::format("fits: {:.0f} times in 100 (nanotron: ", 100 * last)), std::string::npos);
    const nlohmann::json fits = nlohmann::json::parse(written("json", report)).at("results").at("analytic").at("expected").at("fits");
    EXPECT_EQ(fits.at("chance").get<double>(), last);
  }
}

// What an answer says of a GPU whose data sheet alone is known, of links by their line rates, and of a stack that nobody measured.
TEST(BandOfStep, SaysWhatWasMeasured) {
  const auto bands = [](const std::string& cluster, const std::string& software) {
    const std::string text = "model: llama2-7b\ncluster: {" + cluster +
                             "}\ngpus: 1\nparallel: {}\nbatch: {global: 8, micro: 1, sequence: 4096}\nsoftware: " + software + "\n";
    return MeasuredErrors().bands(read_job(config::Node::load_text(text, "job.yaml"), "job"), {});
  };
  const std::string
      like = "like: dgx-h100-ndr400, gpu: ",
      known = "h100-sxm5-80g",
      sheet = "{source: sheet, memory: 80 GiB, memory_bandwidth: 3352 GB/s, power_limit: 700 W, launch: 3 us, peak: {bf16: 989 TFLOP/s}}";
  const ExpectedBands measured = bands(like + known, "pytorch"), by_sheet = bands(like + sheet, "pytorch");
  EXPECT_TRUE(measured.step_basis.starts_with("h100-sxm5-80g and pytorch measured: ")) << measured.step_basis;
  EXPECT_NE(by_sheet.step_basis.find(" by data sheet, pytorch measured: "), std::string::npos) << by_sheet.step_basis;
  EXPECT_GT(by_sheet.step->high / by_sheet.step->low, measured.step->high / measured.step->low);
  const ExpectedBands unknown = bands(like + sheet, "torch-3d");
  EXPECT_NE(unknown.step_basis.find(" by data sheet, other stacks measured: "), std::string::npos) << unknown.step_basis;
  const ExpectedBands rates = bands(
      "gpu: h100-sxm5-80g, gpus_per_node: 8, intra_node: {kind: nvswitch, bandwidth: 450 GB/s}, host: {bandwidth: 63 GB/s}", "pytorch");
  EXPECT_NE(rates.step_basis.find(", network by line rates: "), std::string::npos) << rates.step_basis;
  EXPECT_EQ(rates.step->high, measured.step->high);
}

// What the job changes of a stack is not what it keeps: the same rows. A stack that nobody measured needs as much as any.
TEST(BandOfMemory, OfAChangedStackAndOfAnUnknownOne) {
  const MeasuredErrors errors;
  const MostNeed nanotron = errors.most_need(banded_job("nanotron"));
  EXPECT_GT(nanotron.factor, 1);
  EXPECT_NE(nanotron.basis.find("nanotron"), std::string::npos) << nanotron.basis;
  EXPECT_EQ(errors.most_need(banded_job("{like: nanotron, flash: 2}")).factor, nanotron.factor);
  const MostNeed unknown = errors.most_need(banded_job("gpt-neox"));
  EXPECT_GE(unknown.factor, nanotron.factor);
  EXPECT_NE(unknown.basis.find("other stacks"), std::string::npos) << unknown.basis;
}

// A stack without measurements that measured ones are like keeps what the one keeps that needs most.
TEST(BandOfMemory, OfAStackLikeAMeasuredOne) {
  const MeasuredErrors errors;
  const MostNeed older = errors.most_need(banded_job("deepspeed-3d")), newer = errors.most_need(banded_job("deepspeed-3d-2025")),
                 like = errors.most_need(banded_job("megatron-deepspeed-2022"));
  ASSERT_NE(older.factor, newer.factor);
  const MostNeed& measured = older.factor > newer.factor ? older : newer;
  EXPECT_EQ(like.factor, measured.factor);
  EXPECT_EQ(like.half, measured.half);
  EXPECT_EQ(like.basis, measured.basis);
  EXPECT_EQ(like.spread, measured.spread);
}

// Log-normal: a half where half of the runs needed all of the memory, a standard deviation from there 84 %, or as much on the other side
// 16; one in a hundred goes either way.
TEST(BandOfMemory, TheChanceToFitFollowsFromIt) {
  const MostNeed most{.factor = 1.2, .half = 1.05, .spread = 0.1, .basis = "runs"};
  EXPECT_NEAR(most.chance(1 / 1.05), 0.5, 1e-12);
  EXPECT_NEAR(most.chance(std::exp(-0.1) / 1.05), 0.01 + 0.98 * 0.8413, 1e-4);
  EXPECT_NEAR(most.chance(std::exp(0.1) / 1.05), 0.01 + 0.98 * 0.1587, 1e-4);
  EXPECT_NEAR(most.chance(0.2), 0.99, 1e-9);
  const MostNeed nobody_knows;
  EXPECT_EQ(nobody_knows.chance(1), 1);
  EXPECT_EQ(nobody_knows.chance(1.01), 0);
}

}  // namespace
}  // namespace rehearse::sim
