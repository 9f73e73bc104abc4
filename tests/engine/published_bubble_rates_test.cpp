// Bubble rates that Qi et al. (ICLR 2024, arXiv 2401.10241, table 5) computed from profiled chunk times, from ours: rate = (cost - m (F + B
// + W)) / cost, cost the longest stage's time from its first to its last operation.
#include <gtest/gtest.h>

#include <array>

#include "pipelines.hpp"
#include "workloads/schedule.hpp"

namespace rehearse::tests {
namespace {

struct Row {
  int p, m;
  double f, b, w, hop;  // ms
  double one_f_one_b, zb_h1, zb_h2;
};

constexpr std::array rows{
    Row{8, 24, 18.522, 18.086, 9.337, 0.601, 0.2431, 0.1585, 0.1083},   Row{8, 32, 18.513, 18.086, 9.331, 0.626, 0.1985, 0.1242, 0.0837},
    Row{8, 64, 18.546, 18.097, 9.321, 0.762, 0.1240, 0.0674, 0.0444},   Row{8, 24, 29.718, 29.444, 19.927, 0.527, 0.2347, 0.1323, 0.0698},
    Row{8, 32, 29.802, 29.428, 19.530, 0.577, 0.1898, 0.1045, 0.0559},  Row{8, 64, 29.935, 29.621, 19.388, 0.535, 0.1091, 0.0554, 0.0294},
    Row{16, 48, 11.347, 11.248, 8.132, 0.377, 0.2552, 0.1397, 0.0672},  Row{16, 64, 11.307, 11.254, 8.101, 0.379, 0.2082, 0.1088, 0.0516},
    Row{16, 128, 11.325, 11.308, 8.109, 0.378, 0.1251, 0.0576, 0.0266}, Row{32, 96, 10.419, 10.207, 7.715, 0.408, 0.2646, 0.1421, 0.0641},
    Row{32, 128, 10.408, 10.204, 7.703, 0.408, 0.2168, 0.1106, 0.0490}, Row{32, 256, 10.402, 10.248, 7.698, 0.460, 0.1352, 0.0594, 0.0257}};

// The longest of the stages, each from its own start to its own end.
double rate(const char* schedule, const Row& row) {
  const bool splits = workloads::ScheduleRegistry::get(schedule).splits_backward();
  PricedPipeline job = priced(
      pipeline(schedule, row.p, 1, row.m), [&](int, bool forward) { return forward ? row.f : row.b + (splits ? 0 : row.w); }, row.hop);
  for (workloads::OpId id = 0; id < job.graph.size(); ++id) {
    const workloads::Op op = job.graph.op(id);
    if (op.pass == workloads::Pass::backward_weight) job.prices.work_s[op.item] = row.w;
  }
  job.graph.staggered = true;
  const double cost = longest_path_s(job);
  return 1 - row.m * (row.f + row.b + row.w) / cost;
}

// To the paper's last digit: half a unit of it, and what its inputs' third decimals leave open. Its interleaved rates do not say how many
// chunks they are of.
TEST(PublishedBubbleRates, AreReproduced) {
  constexpr double last_digit = 0.5e-4 + 0.1e-4;
  for (const Row& row : rows) {
    EXPECT_NEAR(rate("1f1b", row), row.one_f_one_b, last_digit) << "p " << row.p << " m " << row.m;
    EXPECT_NEAR(rate("zb-h1", row), row.zb_h1, last_digit) << "p " << row.p << " m " << row.m;
    EXPECT_NEAR(rate("zb-h2", row), row.zb_h2, last_digit) << "p " << row.p << " m " << row.m;
  }
}

}  // namespace
}  // namespace rehearse::tests
