// With many micro-batches the step grows by one period per micro-batch, and that period is the maximum cycle ratio of the schedule's event
// graph (Boost.Graph's Howard algorithm): an answer that knows nothing of our executor.
#include <gtest/gtest.h>

#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/howard_cycle_ratio.hpp>
#include <random>

#include "pipelines.hpp"

namespace rehearse::tests {
namespace {

using EventGraph = boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS, boost::property<boost::vertex_index_t, int>,
                                         boost::property<boost::edge_weight_t, double, boost::property<boost::edge_weight2_t, double>>>;

// Vertices F_s = s and B_s = p + s. An edge a -> b with time t and n tokens: b of turn i starts at least t after a of turn i - n. Stage s
// has w = p - s micro-batches in flight and runs ... F(i+w-1), B(i), F(i+w), B(i+1) ...; its turn i is the pair F(i+w-1), B(i), which makes
// all token counts non-negative, as Howard's algorithm wants them.
class EventGraphOf1F1B {
 public:
  EventGraphOf1F1B(const std::vector<double>& f, const std::vector<double>& b, double hop) : graph_(2 * f.size()) {
    const int p = static_cast<int>(f.size());
    for (int s = 0; s < p; ++s) {
      edge(s, p + s, f[s], 0);  // B(i) after F(i+w-1)
      edge(p + s, s, b[s], 1);  // F(i+w) after B(i)
      if (s + 1 < p)
        edge(s, s + 1, f[s] + hop, 1);  // the next stage's turn holds the micro-batch one turn later: its window is smaller by one
      if (s > 0) edge(p + s, p + s - 1, b[s] + hop, 0);
    }
  }
  double period() const {
    return boost::maximum_cycle_ratio(graph_, boost::get(boost::vertex_index, graph_), boost::get(boost::edge_weight, graph_),
                                      boost::get(boost::edge_weight2, graph_), static_cast<std::vector<Edge>*>(nullptr), Precise{});
  }

 private:
  using Edge = boost::graph_traits<EventGraph>::edge_descriptor;
  // Boost's default accepts any cycle within 0.005 of the best.
  struct Precise : boost::mcr_float<double> {
    static double epsilon() { return -1e-13; }
  };
  void edge(int from, int to, double time, double tokens) { boost::add_edge(from, to, {time, {tokens}}, graph_); }
  EventGraph graph_;
};

TEST(SteadyStateIsCycleRatio, OfUnevenStagesWithMessages) {
  std::mt19937 random(7);
  std::uniform_real_distribution<double> seconds(0.2, 1.0);
  for (int round = 0; round < 40; ++round) {
    const int p = 2 + round % 9;
    std::vector<double> f, b;
    for (int s = 0; s < p; ++s) {
      f.push_back(seconds(random));
      b.push_back(seconds(random) * 2);
    }
    const double hop = round % 3 == 0 ? 0 : seconds(random) * 0.3;
    const auto step = [&](int m) {
      return longest_path_s(priced(
          pipeline("1f1b", p, 1, m), [&](int s, bool forward) { return forward ? f[s] : b[s]; }, hop));
    };
    // The transient of max-plus systems is over long before 200 micro-batches here; averaging over a multiple of every window (1..10
    // divides 2520) makes the growth exact.
    const double growth = (step(200 + 2520) - step(200)) / 2520;
    const double period = EventGraphOf1F1B(f, b, hop).period();
    EXPECT_NEAR(growth, period, 1e-9 * period) << "p " << p << " hop " << hop;
  }
}

}  // namespace
}  // namespace rehearse::tests
