// The peak by formula against peaks that others measured (tests/measured/cases), and against runs that ended out of memory.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <map>
#include <numeric>

#include "places.hpp"
#include "sim/memory/predicted.hpp"
#include "sim/validate/measured_case.hpp"

namespace rehearse::tests {
namespace {

using sim::MeasuredCase;
using sim::Metric;
using sim::RankMemory;

constexpr double published_gib = 1024.0 * 1024.0 * 1024.0;

// What the source measured: tensors, or the whole device as nvidia-smi shows it.
using Quantity = std::function<double(const RankMemory&)>;
double highest(const sim::MemoryResult& memory, const Quantity& quantity) {
  double most = 0;
  for (const RankMemory& rank : memory.ranks) most = std::max(most, quantity(rank));
  return most;
}

struct PeakErrors {
  std::vector<double> relative;
  [[nodiscard]] double mean_abs() const {
    return std::accumulate(relative.begin(), relative.end(), 0.0, [](double sum, double e) { return sum + std::abs(e); }) /
           static_cast<double>(relative.size());
  }
};

std::vector<MeasuredCase> cases_with_peaks(const std::string& file) {
  std::vector<MeasuredCase> cases = sim::read_cases({REHEARSE_SOURCE_DIR "/tests/measured/cases/" + file});
  std::erase_if(cases, [](const MeasuredCase& c) { return !c.measured.contains(Metric::peak_memory_gib); });
  return cases;
}

// Per group, over the cases whose jobs this version can run.
std::map<std::string, PeakErrors> errors_of(const std::string& file, const Quantity& quantity) {
  std::map<std::string, PeakErrors> groups;
  for (const MeasuredCase& c : cases_with_peaks(file)) {
    try {
      const sim::Job job = sim::read_job(c.job, c.id, c.models);
      const sim::MemoryResult memory = sim::predicted_memory(job);
      EXPECT_TRUE(memory.fits()) << c.id << " ran";
      const double predicted = highest(memory, quantity) / published_gib;
      const double error = predicted / c.measured.at(Metric::peak_memory_gib) - 1;
      groups[c.group].relative.push_back(error);
      fmt::print("{:60} measured {:6.2f} GiB, predicted {:6.2f}, {:+.1f} %\n", c.id, c.measured.at(Metric::peak_memory_gib), predicted,
                 100 * error);
    } catch (const config::InputError&) {  // a model or schedule that is not there yet; the counts below say how many must be
    }
  }
  for (const auto& [group, errors] : groups) {
    fmt::print("{}: {} cases, mean error {:.1f} %\n", group, errors.relative.size(), 100 * errors.mean_abs());
  }
  return groups;
}

void expect_mean_below(const std::map<std::string, PeakErrors>& groups, const std::string& group, std::size_t at_least, double bound) {
  ASSERT_TRUE(groups.contains(group)) << group;
  EXPECT_GE(groups.at(group).relative.size(), at_least) << group;
  EXPECT_LT(groups.at(group).mean_abs(), bound) << group;
}

// Everything is known here, and allocated tensors are what is measured: 1 % is a tenth of a layer's activations.
TEST(PublishedPeaks, OfTensorsOnOneB200NodeAreWithinAPercent) {
  expect_mean_below(errors_of("simumax-b200.yaml", &RankMemory::tensor_bytes), "dense-b200-node", 17, 0.01);
}

// nvidia-smi, printed in whole GB: the allocator's cache is one stated share for all (platforms/software). 5 % is this project's aim.
TEST(PublishedPeaks, OfBloomRunsAreWithinFivePercent) {
  const auto groups = errors_of("bloom.yaml", &RankMemory::device_bytes);
  expect_mean_below(groups, "dense-a100-bloom-early", 33, 0.05);
  expect_mean_below(groups, "dense-a100-bloom", 17, 0.05);
}

// The cases say unfused attention. Pairs that differ in the micro-batch alone show it: 28.3B with p = 32 needs 43 GB at b = 1 and 69
// GB at b = 2, 26 GB for 31 micro-batches of 2 layers = 0.42 GB a layer, where flash attention leaves 0.21 GB and stored scores 0.46 GB.
// With unfused attention 5 % is this project's aim, with rounding to whole GB on peaks from 12 on.
TEST(PublishedPeaks, OfZeroBubbleRunsAreWithinFivePercentWithStoredScores) {
  expect_mean_below(errors_of("zero-bubble.yaml", &RankMemory::tensor_bytes), "pipeline-a100", 30, 0.05);
}

sim::Job out_of_memory_job(const config::Node& row) {
  config::Node job = row.without("source").without("sharding");
  job.set("optimizer.sharding", row.at("sharding").as_string());
  job.set("attention", "unfused");
  job.set("software", "megatron-deepspeed-2022");
  return sim::read_job(job, "out-of-memory");
}

// Its neighbours ran: 70 layers of that width on the same layout took 59 GB, and 12 layers more, one a stage, are worth 7 GB. What filled
// the GPUs here is not known.
bool unexplained(const std::string& source) { return source.ends_with("line 957"); }

TEST(PublishedPeaks, JobsThatRanOutOfMemoryDoNotFit) {
  const config::Node rows = config::Node::load_file(REHEARSE_SOURCE_DIR "/tests/memory/measured/out-of-memory.yaml");
  for (const config::Node& row : rows.items()) {
    const sim::MemoryResult memory = sim::predicted_memory(out_of_memory_job(row));
    const std::string source = row.at("source").as_string();
    EXPECT_EQ(memory.fits(), unexplained(source)) << source << ": " << memory.fullest()->peak_bytes() / published_gib << " GiB";
  }
}

}  // namespace
}  // namespace rehearse::tests
