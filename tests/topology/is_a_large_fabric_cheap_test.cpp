// Is a fabric of 16,384 GPUs built in well under a second and a few hundred megabytes?
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <string>

#include "config/data_dir.hpp"
#include "tests/topology/clusters.hpp"

namespace {

using namespace rehearse;
using namespace rehearse::topology;

constexpr int gpus = 16384;

Fabric large() {
  const auto file = config::data_file("platforms/clusters", "meta-h100");
  return Fabric::build(read_cluster(config::Node::load_file(file), "meta-h100"), gpus);
}

// Measured: 1 to 2 ms; a second leaves room for a debug build with sanitizers on a busy machine.
TEST(IsALargeFabricCheap, InTime) {
  const auto start = std::chrono::steady_clock::now();
  const auto fabric = large();
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(1));
  EXPECT_EQ(fabric.gpu_count(), gpus);
}

// The peak of the process, in KiB, since it began: what getrusage() says counts the program before exec() too.
long peak_kib() {
  std::ifstream status("/proc/self/status");
  std::string key;
  for (long kib = 0; status >> key; status.ignore(1 << 20, '\n')) {
    if (key == "VmHWM:" && status >> kib) return kib;
  }
  return 0;
}

// With the routing tables towards all 1,024 racks filled, in a process of its own: what other tests have left does not count.
TEST(IsALargeFabricCheap, InMemory) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        const long before = peak_kib();
        const auto fabric = large();
        Route route;
        for (int to = 0; to < gpus; to += 8) fabric.route((to + gpus / 2) % gpus, to, 0, route);
        std::exit(peak_kib() > before && peak_kib() < 300 * 1024 ? 0 : 1);
      },
      ::testing::ExitedWithCode(0), "");
}

// An outermost check that nothing in the analysis is quadratic: 33,000 vertices in well under the seconds that would take.
TEST(IsALargeFabricCheap, ToAnalyse) {
  const auto fabric = large();
  const auto start = std::chrono::steady_clock::now();
  const auto cuts = fabric.cuts();
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10));
  EXPECT_EQ(cuts.single_points.size(), 1024u);  // every rack hangs on its one switch
}

}  // namespace
