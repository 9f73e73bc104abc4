// The whole message, position, reason and suggestion, of every refusal.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "tests/faults/context.hpp"

namespace rehearse::sim {
namespace {

template <class Read>
std::string message_of(Read read) {
  try {
    read();
  } catch (const config::InputError& error) {
    const config::Position& where = error.where();
    return fmt::format("{}:{}: {}", where.line, where.column, error.message());
  }
  return "accepted";
}

struct Bad {
  const char* text;
  const char* message;
};

class IsABadTraceRefused : public testing::TestWithParam<Bad> {};

FaultScenario read_trace(const std::string& text) {
  const auto path = std::filesystem::temp_directory_path() / fmt::format("rehearse-trace-{}.csv", ::getpid());
  std::ofstream(path) << text;
  const std::string name = path.string();
  return tests::scenario("\"" + name + "\"");
}

TEST_P(IsABadTraceRefused, with_line_and_reason) {
  EXPECT_EQ(message_of([] { static_cast<void>(read_trace(GetParam().text)); }), GetParam().message);
}

#define HEADER "time_s,component,kind,duration_s,node\n"
INSTANTIATE_TEST_SUITE_P(Traces, IsABadTraceRefused,
                         testing::Values(Bad{"", "1:1: the file must begin with the titles of its columns"},
                                         Bad{"time_s,component,kind\n", "1:1: column 'duration_s' is missing"},
                                         Bad{"time_s,component,kind,duration_s,host\n", "1:34: unknown column 'host'"},
                                         Bad{"time_s,component,kind,duration_s,kind\n", "1:34: column 'kind' stands twice"},
                                         Bad{HEADER "1,gpu,fail,,0\n2,gpu,fail,\n", "3:1: 4 cells in a table of 5 columns"},
                                         Bad{HEADER "\n# a comment\nsoon,gpu,fail,,0\n", "4:1: time_s must be a number, not 'soon'"},
                                         Bad{HEADER ",gpu,fail,,0\n", "2:1: no time_s"},
                                         Bad{HEADER "nan,gpu,fail,,0\n", "2:1: time_s must be a number, not 'nan'"},
                                         Bad{HEADER "1,gpu,fail,,0\n0.5,gpu,fail,,0\n", "3:1: earlier than the row before it"},
                                         Bad{HEADER "1,gpu,fail,,1.5\n", "2:1: node must be a whole number, not '1.5'"},
                                         Bad{HEADER "1,gpu: x,fail,,0\n", "2:3: component must be a word, not 'gpu: x'"}));
#undef HEADER

// Messages that the readers of single values give: what matters here is the line and that the reason names the field.
TEST(IsABadTraceRefused, for_what_a_fault_cannot_be) {
  const std::string header = "time_s,component,kind,duration_s,node,slowdown\n0,gpu,fail,,0,\n";
  for (const auto& [row, reason] : std::vector<std::pair<std::string, std::string>>{{"-1,gpu,fail,,0,", "at"},
                                                                                    {"1,gpu,fail,-3,0,", "recovery"},
                                                                                    {"1,gqu,fail,,0,", "component"},
                                                                                    {"1,gpu,explode,,0,", "kind"},
                                                                                    {"1,gpu,fail,,16,", "node"},
                                                                                    {"1,gpu,slow,,0,", "slowdown"},
                                                                                    {"1,gpu,slow,,0,0.5", "slowdown"},
                                                                                    {"1,gpu,fail,,0,2", "slowdown"},
                                                                                    {"1,software,slow,,0,2", "component"},
                                                                                    {"1e99,gpu,fail,,0,", "at"}}) {
    const std::string message = message_of([trace = header + row + "\n"] { static_cast<void>(read_trace(trace)); });
    EXPECT_TRUE(message.starts_with("3:1: ")) << row << ": " << message;
    EXPECT_NE(message.find(reason), std::string::npos) << row << ": " << message;
  }
}

TEST(IsAGoodTraceUnderstood, with_all_columns) {
  const FaultScenario faults = read_trace(
      "time_s,component,kind,duration_s,node,nodes,level,slowdown\n10,gpu,fail,,3,,,\r\n20.5,software,fail,33,,,job,\n30,nic,slow,40,5,2,,"
      "2\n");
  const std::vector<Fault> drawn = tests::history(faults, 1, 1);
  ASSERT_EQ(drawn.size(), 3U);
  EXPECT_EQ(drawn[0].level, FaultLevel::pod);
  EXPECT_EQ(drawn[0].node, 3);
  EXPECT_FALSE(drawn[0].recovery.has_value());
  EXPECT_EQ(drawn[1].at, to_ns(20.5));
  EXPECT_EQ(drawn[1].level, FaultLevel::job);
  EXPECT_EQ(drawn[1].recovery, to_ns(33));
  EXPECT_EQ(drawn[2].kind, FaultKind::slow);
  EXPECT_EQ(drawn[2].duration, to_ns(40));
  EXPECT_EQ(drawn[2].node, 4);  // the block of two that holds node 5
  EXPECT_EQ(drawn[2].slowdown, 2);
}

class IsABadSourceRefused : public testing::TestWithParam<Bad> {};

TEST_P(IsABadSourceRefused, with_its_place) {
  EXPECT_EQ(message_of([] { static_cast<void>(tests::scenario(GetParam().text)); }), GetParam().message);
}

INSTANTIATE_TEST_SUITE_P(
    Sources, IsABadSourceRefused,
    testing::Values(Bad{"[]", "1:1: faults must be a mapping of sources, each with a name"},
                    Bad{"{a: poisson}", "1:5: a fault source is a mapping"}, Bad{"{a: {rate: 1 /day}}", "1:5: missing key 'source' in a"},
                    Bad{"{a: {source: poison}}", "1:14: a.source cannot be 'poison'"},
                    Bad{"{a: {source: poisson}}", "1:5: missing key 'rate' in a"},
                    Bad{"{a: {source: poisson, rate: 2 /s}}", "1:29: more than one failure a second"},
                    Bad{"{a: {source: weibull, rate: 1 /day}}", "1:5: missing key 'shape' in a"},
                    Bad{"{a: {source: poisson, rate: 1 /day, level: {pod: 0}}}", "1:44: one of the shares must be positive"},
                    Bad{"{a: {source: poisson, rate: 1 /day, slowdown: 2}}",
                        "1:37: slowdown is for kind slow; what fails takes its recovery time"},
                    Bad{"{a: {source: poisson, rate: 1 /day, kind: slow, component: gpu}}", "1:5: missing key 'slowdown'"},
                    Bad{"{a: {source: flapping, component: link, slowdown: 2, period: 5 s, down: 5 s}}",
                        "1:62: the period must be longer than the time down"},
                    Bad{"{a: {source: script, faults: [{at: 5 s}, {at: 4 s}]}}", "1:47: earlier than the fault before it"},
                    Bad{"{a: {source: trace, file: none.csv}}", "1:27: cannot read 'none.csv': No such file or directory"},
                    Bad{"nowhere", "1:1: unknown fault scenario 'nowhere'"}));

}  // namespace
}  // namespace rehearse::sim
