// Senders that differ: do rows add up to what each sender holds, are draws what they claim to be, and does the job's own byte matrix drive
// the exchange in the formula and on the timeline alike?
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <numeric>
#include <random>

#include "alone.hpp"
#include "config/random.hpp"
#include "jobs.hpp"
#include "sim/analytic/predict.hpp"
#include "sim/engine/simulate.hpp"
#include "workloads/expert_layer.hpp"
#include "workloads/expert_loads.hpp"
#include "workloads/rank_grid.hpp"

namespace rehearse::tests {
namespace {

using config::Random;
using workloads::ExpertLoads;
using workloads::GroupKind;
using workloads::LayerLoad;

constexpr int ep = 8, experts = 16, top_k = 2, tokens = 1024;

sim::Job job_with(const std::string& moe, const std::string& simulation = "", int layers = 2) {
  return expert_job(16, fmt::format("{{dp: 16, ep: {}}}", ep), fmt::format("{{global: 32, micro: 1, sequence: {}}}", tokens),
                    fmt::format("moe: {{{}}}\n{}", moe, simulation), layers);
}

double row_sum(const LayerLoad& load, int sender) {
  const auto first = load.sent->begin() + static_cast<std::ptrdiff_t>(sender) * ep;
  return std::accumulate(first, first + ep, 0.0);
}

TEST(Senders, RowsAddUpToWhatEachHoldsAndColumnsToWhatEachGets) {
  for (const char* routing : {"{zipf: 0.8, senders: sampled}", "{zipf: 0.8, senders: own}", "{dirichlet: 0.1, senders: sampled, seed: 4}",
                              "{dirichlet: 0.1, senders: own}"}) {
    for (const char* capacity : {"none", "1.0", "1.5"}) {
      const sim::Job job = job_with(fmt::format("routing: {}, capacity_factor: {}", routing, capacity));
      const ExpertLoads loads(job.workload);
      ASSERT_FALSE(loads.senders_alike());
      for (int i = 0; i < 2; ++i) {
        const LayerLoad& load = loads.at(1, i);
        double dropped = 0;
        for (int rank = 0; rank < ep; ++rank) {
          EXPECT_NEAR(row_sum(load, rank) + load.dropped_by[rank], tokens * top_k, 1e-6) << routing;
          dropped += load.dropped_by[rank];
          double column = 0;
          for (int sender = 0; sender < ep; ++sender) column += (*load.sent)[static_cast<std::size_t>(sender) * ep + rank];
          EXPECT_NEAR(column, loads.received(rank, 1, i), 1e-6) << routing;
        }
        EXPECT_NEAR(dropped, load.dropped, 1e-6);
        EXPECT_EQ(dropped > 0, std::string(capacity) != "none") << routing;
        if (dropped == 0) {
          EXPECT_FALSE(std::equal(load.sent->begin(), load.sent->begin() + ep, load.sent->begin() + ep)) << routing;  // senders differ
        }
      }
    }
  }
}

// Drops by hand: sender 0 sends everything to experts 0 and 1, the others evenly to all 16; capacity is twice the balanced share.
TEST(Senders, CapacityDropsWhatEachSendsBeyondIt) {
  std::string rows;
  for (int sender = 0; sender < ep; ++sender) {
    for (int e = 0; e < experts; ++e) rows += fmt::format("[0, 0, 0, {}, {}, {}],", sender, e, sender > 0 || e < 2 ? 1 : 0);
  }
  rows.pop_back();
  const sim::Job job = expert_job(8, "{dp: 8, ep: 8}", "{global: 8, micro: 1, sequence: 1024}",
                                  fmt::format("moe: {{routing: {{counts: [{}]}}, capacity_factor: 2}}\n", rows), 1);
  const ExpertLoads loads(job.workload);
  const LayerLoad& load = loads.at(0, 0);
  // 2048 pairs of each sender; an expert takes at most 2 x 2048 / 16 = 256 of them. Sender 0: 1024 to each of two experts, of which 256
  // stay.
  EXPECT_NEAR(load.dropped_by[0], 2048 - 2 * 256, 1e-9);
  EXPECT_NEAR(load.dropped, 2048 - 2 * 256, 1e-9);
  EXPECT_NEAR(load.tokens[0], 256 + 7 * 128, 1e-9);
  EXPECT_NEAR(load.tokens[5], 7 * 128, 1e-9);
  const sim::StepResult result = sim::predict(job);
  ASSERT_TRUE(result.experts);
  ASSERT_EQ(result.experts->layers.size(), 1U);
  EXPECT_NEAR(result.experts->layers[0].routed, 8 * 2048, 1e-6);
  EXPECT_NEAR(result.experts->layers[0].dropped, 1536, 1e-6);
  EXPECT_NEAR(result.experts->dropped_share, 1536.0 / (8 * 2048), 1e-12);
}

// n draws: mean n p, variance n p (1 - p), checked to 5 standard errors of 20,000 samples; both ways of drawing and their mirror.
TEST(Binomial, HasItsMeanAndVariance) {
  constexpr int samples = 20000;
  for (const auto& [n, p] : {std::pair{40, 0.1}, {1000, 0.004}, {50, 0.4}, {2048, 0.06}, {30000, 0.3}, {100, 0.9}}) {
    Random random(static_cast<std::uint64_t>(n));
    double sum = 0, squares = 0;
    for (int i = 0; i < samples; ++i) {
      const auto k = static_cast<double>(config::binomial(n, p, random));
      ASSERT_GE(k, 0);
      ASSERT_LE(k, n);
      sum += k - n * p;
      squares += (k - n * p) * (k - n * p);
    }
    const double variance = n * p * (1 - p);
    EXPECT_NEAR(sum / samples, 0, 5 * std::sqrt(variance / samples)) << n << " " << p;
    EXPECT_NEAR(squares / samples, variance, 5 * variance * std::sqrt(2.1 / samples)) << n << " " << p;
  }
}

// The distribution itself: chi-squared of 40,000 draws against the exact probabilities, 99.9 % quantile of the degrees of freedom.
TEST(Binomial, IsTheExactDistribution) {
  constexpr int samples = 40000;
  for (const auto& [n, p] : {std::pair{60, 0.05}, {60, 0.35}, {200, 0.2}}) {
    Random random(9);
    std::map<std::int64_t, int> seen;
    for (int i = 0; i < samples; ++i) ++seen[config::binomial(n, p, random)];
    double chi = 0;
    int cells = 0;
    for (int k = 0; k <= n; ++k) {
      const double expected =
          samples * std::exp(std::lgamma(n + 1) - std::lgamma(k + 1) - std::lgamma(n - k + 1) + k * std::log(p) + (n - k) * std::log1p(-p));
      if (expected < 5) continue;
      chi += (seen[k] - expected) * (seen[k] - expected) / expected;
      ++cells;
    }
    const double degrees = cells - 1,
                 quantile = degrees * std::pow(1 - 2 / (9 * degrees) + 3.09 * std::sqrt(2 / (9 * degrees)), 3);  // Wilson-Hilferty
    EXPECT_LT(chi, quantile) << n << " " << p;
  }
}

// Sampled: on average the layer's popularity, and each row spread as draws are.
TEST(Senders, SampledRowsFollowTheLayersPopularity) {
  const sim::Job sampled = job_with("routing: {zipf: 0.6, senders: sampled}"), alike = job_with("routing: {zipf: 0.6}");
  const ExpertLoads drawn(sampled.workload), mean(alike.workload);
  double squares = 0;
  int cells = 0;
  for (int layer = 0; layer < 2; ++layer) {
    for (int i = 0; i < 2; ++i) {
      for (int to = 0; to < ep; ++to) {
        const double pairs = tokens * top_k, expected = mean.received(to, layer, i) / ep, p = expected / pairs;
        for (int sender = 0; sender < ep; ++sender) {
          const double off = (*drawn.at(layer, i).sent)[static_cast<std::size_t>(sender) * ep + to] - expected;
          squares += off * off / (pairs * p * (1 - p));
          ++cells;
        }
      }
    }
  }
  EXPECT_NEAR(squares / cells, 1, 5 * std::sqrt(2.0 / cells));  // 256 cells
}

// A file that names senders; one that does not stays what it was.
TEST(Senders, AreReadFromAFileThatNamesThem) {
  const std::string path = testing::TempDir() + "by_sender_" + std::to_string(getpid()) + ".csv";
  std::ofstream file(path);
  file << "step,layer,microbatch,sender,expert,tokens\n";
  for (int i = 0; i < 2; ++i) {
    for (int sender = 0; sender < ep; ++sender) {
      for (int e = 0; e < experts; ++e) file << fmt::format("0,0,{},{},{},{}\n", i, sender, e, 3 + (e * 5 + sender * 3 + i) % 7);
    }
  }
  file.close();
  const sim::Job job = job_with("routing: {trace: " + path + "}", "", 1);
  std::filesystem::remove(path);
  const ExpertLoads loads(job.workload);
  for (int sender = 0; sender < ep; ++sender) {
    double all = 0;
    for (int e = 0; e < experts; ++e) all += 3 + (e * 5 + sender * 3 + 1) % 7;
    for (int to = 0; to < ep; ++to) {
      const double counted = 6 + (2 * to * 5 + sender * 3 + 1) % 7 + ((2 * to + 1) * 5 + sender * 3 + 1) % 7;
      EXPECT_NEAR((*loads.at(0, 1).sent)[static_cast<std::size_t>(sender) * ep + to], tokens * top_k * counted / all, 1e-6);
    }
  }
  const sim::Job again = sim::read_job(config::Node::load_text(job.resolved.to_yaml(), "again"), "again");
  EXPECT_EQ(again.resolved.to_yaml(), job.resolved.to_yaml());
  EXPECT_EQ(sim::predict(again).step_s, sim::predict(job).step_s);
}

// The exchange as the job itself makes it, executed alone: alpha and its busiest port, added up from the rows pair by pair.
TEST(Senders, TheJobsOwnMatrixTakesAlphaAndItsBusiestPort) {
  for (const char* routing : {"{zipf: 0.8, senders: sampled}", "{dirichlet: 0.1, senders: own}", "{zipf: 1.2, senders: own, seed: 3}"}) {
    for (const auto& [gpus, group] : {std::pair{8, 8}, {16, 16}}) {
      const sim::Job job =
          expert_job(gpus, fmt::format("{{dp: {}, ep: {}}}", gpus, group), fmt::format("{{global: {}, micro: 1, sequence: 4096}}", gpus),
                     fmt::format("moe: {{routing: {}}}\nsimulation: {{ranks: all}}\n{}", routing, tokens_alone), 2);
      const workloads::ExpertLayer layer(job.workload);
      const std::vector<int> members = workloads::RankGrid(job.workload.parallel).group(GroupKind::ep, 0);
      const sim::CommunicationModel model(job.system.cluster, job.workload, "auto");
      const workloads::ExpertCalls& calls = layer.calls(workloads::Pass::forward, 0, 1, 0);
      const LayerLoad& load = layer.loads().at(1, 0);
      for (const workloads::Communication* what : {&calls.dispatch.front(), &calls.combine.front()}) {
        const bool back = what == &calls.combine.front();
        for (int from = 0; from < group; ++from) {
          for (int to = 0; to < group; ++to) {
            const std::size_t cell = back ? static_cast<std::size_t>(to) * group + from : static_cast<std::size_t>(from) * group + to;
            ASSERT_NEAR(what->exchange->bytes(from, to), (*load.sent)[cell] * 2048 * 2, 1e-6);  // hidden 2048 in 16 bits
          }
        }
        const double expected = busiest_port_s(job, *what->exchange, members);
        EXPECT_NEAR(model.price(*what, members).seconds(), expected, 1e-12 * expected) << routing;
        EXPECT_NEAR(executed_s(job, *what), expected, 1e-6 * expected) << routing;
      }
    }
  }
}

// Two ranks in a node, everything by hand: what crosses each port is one number.
TEST(Senders, OfTwoRanksByHand) {
  const char* rows = "[0, 0, 0, 0, 0, 3], [0, 0, 0, 0, 15, 1], [0, 0, 0, 1, 3, 2], [0, 0, 0, 1, 12, 2]";
  const sim::Job job = expert_job(2, "{dp: 2, ep: 2}", "{global: 2, micro: 1, sequence: 1000}",
                                  fmt::format("moe: {{routing: {{counts: [{}]}}}}\nsimulation: {{ranks: all}}\n{}", rows, tokens_alone), 1);
  const workloads::ExpertLayer layer(job.workload);
  // 2000 pairs each. An expert gets at most every token, 1000: sender 0 sends 1000 to its own expert 0 and 1000 to expert 15 on rank 1.
  const LayerLoad& load = layer.loads().at(0, 0);
  EXPECT_NEAR((*load.sent)[1], 1000, 1e-9);
  EXPECT_NEAR((*load.sent)[2], 1000, 1e-9);
  const double expected = 3e-6 + 1000 * 2048 * 2 / (300e9 * 0.8);
  EXPECT_NEAR(executed_s(job, layer.calls(workloads::Pass::forward, 0, 0, 0).dispatch.front()), expected, 1e-6 * expected);
}

// Every dispatcher, folded and with all ranks, formula and timeline.
TEST(Senders, DriveEveryDispatcherInFormulaAndTimelineAlike) {
  for (const char* dispatcher : {"alltoall", "hierarchical", "allgather"}) {
    for (const char* senders : {"sampled", "own"}) {
      const std::string moe = fmt::format("routing: {{zipf: 0.7, senders: {}}}, dispatcher: {}, chunks: 2", senders, dispatcher);
      const sim::Job folded = job_with(moe), all = job_with(moe, "simulation: {ranks: all}\n");
      const sim::StepResult simulated = sim::simulate_in_child(folded), whole = sim::simulate_in_child(all), formula = sim::predict(folded);
      EXPECT_NEAR(simulated.step_s, whole.step_s, 1e-9 * whole.step_s) << moe;
      EXPECT_LT(simulated.ranks.size(), whole.ranks.size());
      EXPECT_NEAR(simulated.step_s, formula.step_s, 0.02 * formula.step_s) << moe;
      EXPECT_NEAR(simulated.memory.fullest()->peak_bytes(), formula.memory.fullest()->peak_bytes(),
                  0.01 * formula.memory.fullest()->peak_bytes())
          << moe;
      EXPECT_EQ(sim::simulate_in_child(folded).step_s, simulated.step_s) << moe;
    }
  }
}

// Rows that happen to be equal are the alike ones, also over counterparts.
TEST(Senders, EqualRowsOverCounterpartsAreTheAlikeOnes) {
  std::mt19937 random(11);
  for (const bool reversed : {false, true}) {
    for (const int limit : {0, 2}) {
      workloads::Exchange alike;
      alike.bytes_per_pair = 5;
      alike.hierarchical = true;
      alike.top_k = 4;
      alike.experts = 64;
      alike.domains_per_token = limit;
      alike.reversed = reversed;
      for (int i = 0; i < 16; ++i) alike.pairs.push_back(static_cast<double>(100 + random() % 1000));
      workloads::Exchange full = alike;
      std::vector<double> rows;
      for (int i = 0; i < 16; ++i) rows.insert(rows.end(), alike.pairs.begin(), alike.pairs.end());
      full.by_sender = std::make_shared<const std::vector<double>>(rows);
      workloads::GroupShape group{.size = 16, .domain = {}};
      for (int i = 0; i < 16; ++i) group.domain.push_back(i / 4);
      const workloads::PortLoads a = port_loads(alike, group), b = port_loads(full, group);
      EXPECT_TRUE(b.forwards);
      for (int i = 0; i < 16; ++i) {
        EXPECT_NEAR(a.intra_out[i], b.intra_out[i], 1e-8);
        EXPECT_NEAR(a.intra_in[i], b.intra_in[i], 1e-8);
        EXPECT_NEAR(a.inter_out[i], b.inter_out[i], 1e-8);
        EXPECT_NEAR(a.inter_in[i], b.inter_in[i], 1e-8);
      }
    }
  }
}

}  // namespace
}  // namespace rehearse::tests
