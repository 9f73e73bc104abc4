#include <gtest/gtest.h>

#include "sim/report/console_tables.hpp"
#include "tests/report/hand_made.hpp"

namespace rehearse::sim {
namespace {

TEST(Console, ShowsAStep) {
  const StepResult result = hand_made_step("analytic");
  EXPECT_EQ(written("console", Report(hand_made_job()).own(StepResults{{&result}})),
            "small: gpt on 4 x a100 (lab)\n"
            "tp 2, pp 2, 1f1b; 8 sequences of 1024, micro-batch 1\n"
            "\n"
            "analytic: step 2000.0 ms, 1024 tokens/s/GPU, 50.0 TFLOP/s/GPU, MFU 50.0 %, bubble 25.0 % of the rest\n"
            "ranks simulated: 2 of 4\n"
            "\n"
            "phase           ms    share\n"
            "compute     1300.0   65.0 %\n"
            "exposed tp   200.0   10.0 %\n"
            "optimizer    100.0    5.0 %\n"
            "bubble       400.0   20.0 %\n"
            "step        2000.0  100.0 %\n"
            "\n"
            "stage  ranks  compute  exposed tp  optimizer  bubble\n"
            "    0      2   1200.0       200.0      100.0   500.0\n"
            "    1      2   1400.0       200.0      100.0   300.0\n"
            "\n"
            "collective  group  algorithm  ranks      size  calls    time  algbw GB/s  busbw GB/s\n"
            "all-reduce  tp     ring           8  64.0 MiB     32  500 us       134.2       234.9\n");
}

TEST(Console, ShowsAComparison) {
  Comparison comparison = hand_made_comparison();
  comparison.simulated.collectives.clear();
  EXPECT_EQ(written("console", Report(hand_made_job()).own(StepResults{{&comparison.analytic}}).add(&comparison)),
            "small: gpt on 4 x a100 (lab)\n"
            "tp 2, pp 2, 1f1b; 8 sequences of 1024, micro-batch 1\n"
            "\n"
            "analytic: step 2000.0 ms, 1024 tokens/s/GPU, 50.0 TFLOP/s/GPU, MFU 50.0 %, bubble 25.0 % of the rest\n"
            "\n"
            "simulated: step 2200.0 ms, 931 tokens/s/GPU, 45.5 TFLOP/s/GPU, MFU 45.5 %, bubble 37.5 % of the rest\n"
            "\n"
            "phase       analytic ms  simulated ms  difference ms           critical path ms  reason\n"
            "compute          1300.0        1300.0           +0.0   +0.0 %\n"
            "exposed tp        200.0         200.0           +0.0   +0.0 %\n"
            "optimizer         100.0         100.0           +0.0   +0.0 %\n"
            "bubble            400.0         600.0         +200.0  +50.0 %                    uneven stages, and \"warm-up\" waits\n"
            "step             2000.0        2200.0         +200.0  +10.0 %            1800.0\n"
            "\n"
            "- stage 1 is slower than the mean\n");
}

TEST(Console, ColoursOnlyWhenAsked) {
  const StepResult result = hand_made_step("analytic");
  EXPECT_EQ(written("console", Report(hand_made_job()).own(StepResults{{&result}})).find('\033'), std::string::npos);
  Report coloured = Report(hand_made_job()).own(StepResults{{&result}});
  coloured.colour = true;
  EXPECT_NE(written("console", coloured).find('\033'), std::string::npos);
}

TEST(Console, ShortStepsGetMoreDecimals) {
  EXPECT_EQ(Milliseconds(0.0123456)(0.0123456), "12.346");
  EXPECT_EQ(Milliseconds(1)(0.0123456), "12.3");
}

TEST(Console, ADifferenceThatRoundsToNothingHasNoMinus) {
  EXPECT_EQ(Milliseconds(1).difference(-1e-9), "+0.0");
  EXPECT_EQ(Milliseconds(1).difference(-0.001), "-1.0");
}

}  // namespace
}  // namespace rehearse::sim
