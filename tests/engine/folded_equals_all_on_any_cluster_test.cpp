// Where ranks share ports, host links and trunks, where parts are slow and experts uneven: one rank of each class gives the step of all.
#include <gtest/gtest.h>

#include <random>

#include "sim/engine/simulate.hpp"
#include "sim/job/job.hpp"
#include "tests/engine/jobs.hpp"

namespace rehearse::tests {
namespace {

// Draws parts of jobs; the same seed gives the same job.
class Draw {
 public:
  explicit Draw(std::uint64_t seed) : random_(seed) {}
  template <class T>
  T one_of(const std::vector<T>& choices) {
    return choices[random_() % choices.size()];
  }
  std::string text(std::initializer_list<const char*> choices) { return one_of(std::vector<std::string>(choices.begin(), choices.end())); }
  bool once_in(unsigned times) { return random_() % times == 0; }

 private:
  std::mt19937_64 random_;
};

struct Drawn {
  std::string text;
  sim::Job job;
};

// 8 nodes of 4, or 4 of 8.
std::string cluster(Draw& draw, int gpus_per_node) {
  const int nics = draw.one_of(std::vector{1, 2, gpus_per_node, gpus_per_node});
  const int nodes = 32 / gpus_per_node;
  const std::string intra = draw.text({"nvswitch", "nvswitch", "full_mesh", "pcie"});
  const std::string network = draw.one_of(std::vector<std::string>{
      "{kind: single_switch}", "{kind: leaf_spine, nodes_per_leaf: 1, oversubscription: 2, spines: 4}",
      "{kind: leaf_spine, nodes_per_leaf: 2, oversubscription: 4, spines: 2}", "{kind: rail_optimised, nodes_per_leaf: 2}",
      "{kind: rail_optimised, nodes_per_leaf: 2, oversubscription: 3}",
      "{kind: fat_tree, nodes_per_leaf: 1, nodes_per_pod: 2, oversubscription: 2, pod_oversubscription: 2}",
      fmt::format("{{kind: torus, dims: [2, {}], trunk: 100 Gbps}}", nodes / 2),
      fmt::format("{{kind: dragonfly, groups: 2, routers_per_group: {}, nodes_per_router: 2, trunk: 100 Gbps}}", nodes / 4)});
  const std::string contention = draw.text(
      {"{tp: {alpha: 1, beta: 1}}", "{dp: {alpha: 1.2, beta: 1.3}, pp: {alpha: 1.1, beta: 1.2}, offload: {alpha: 1.1, beta: 1.5}}"});
  return fmt::format(R"({}
  gpus_per_node: {}
  nodes: {}
  intra_node: {{kind: {}, bandwidth: 100 GB/s, efficiency: 0.8, latency: 3 us}}
  nics: {{per_node: {}, bandwidth: 100 Gbps, efficiency: 0.9, latency: 6 us}}
  network: {}
  host: {{bandwidth: 20 GB/s, efficiency: 1, latency: 10 us, gpus_per_link: {}}}
  host_memory: {{size: 2 TiB, bandwidth: 100 GB/s}})",
                     small_gpu(contention), gpus_per_node, nodes, intra, nics, network, draw.one_of(std::vector{1, 2}));
}

std::string parallel(Draw& draw, bool experts) {
  const std::string order = draw.once_in(3) && !experts ? draw.text({", order: tp-cp-ep-pp-dp", ", order: dp-tp-cp-ep-pp"}) : "";
  if (experts)
    return draw.text({"{tp: 2, sp: true, ep: 4, etp: 1}", "{ep: 8}", "{pp: 2, ep: 4}", "{tp: 2, sp: true, pp: 2, ep: 8, etp: 1}"});
  return draw.one_of(std::vector<std::string>{"{tp: 1", "{tp: 4, sp: true", "{tp: 2, pp: 4", "{pp: 2, cp: 2", "{tp: 2, cp: 2, pp: 2",
                                              "{tp: 8, sp: true", "{pp: 8"}) +
         order + "}";
}

std::string faults(Draw& draw) {
  if (!draw.once_in(2)) return "";
  return ", faults: [" + draw.text({"gpu 1 slow 1.0001", "gpu 1 slow 1.5", "nic 0 slow 3", "rail 0 slow 2", "node 0 slow 1.2"}) + "]";
}

Drawn draw_job(std::uint64_t seed) {
  Draw draw(seed);
  const bool experts = draw.once_in(3);
  const int gpus_per_node = draw.one_of(std::vector{4, 8});
  std::string text =
      fmt::format("model: {{layers: 4, hidden: 512, heads: 8, kv_heads: 8, ffn: 1024, activation: gelu, vocab: 0, positions: rope{}}}\n",
                  experts ? ", moe: {experts: 8, top_k: 2, ffn: 512}" : "");
  text += "cluster:" + cluster(draw, gpus_per_node) + "\n";
  text += "gpus: 32\nparallel: " + parallel(draw, experts) + "\n";
  text += "batch: {global: 64, micro: 1, sequence: 512}\nprecision: bf16\n";
  text += "optimizer: {sharding: " + draw.text({"none", "zero1", "zero2", "zero3"}) + (draw.once_in(6) && !experts ? ", device: cpu" : "") +
          "}\n";
  text += fmt::format("overlap: {{dp_gradients: {}, dp_parameters: {}}}\n", draw.once_in(2), draw.once_in(2));
  if (experts) {
    text += "moe: {routing: " + draw.text({"balanced", "{zipf: 0.5}", "{zipf: 0.4, senders: own}"}) +
            ", dispatcher: " + draw.text({"alltoall", "allgather", "hierarchical"}) + "}\n";
  } else if (draw.once_in(4)) {
    text += "offload: {activations: true}\n";
  }
  text += "simulation: {granularity: stage, collectives: " + draw.text({"ring", "ring", "auto", "closed", "step"}) +
          ", algorithm: " + draw.text({"auto", "auto", "ring", "tree", "halving-doubling"}) + faults(draw) + "}\n";
  return {text, sim::read_job(config::Node::load_text(text, "drawn.yaml"), "drawn")};
}

class FoldedEqualsAllOnAnyCluster : public testing::TestWithParam<int> {};

// What is no job (more stages than layers, a host link in a PCIe box) is drawn again.
Drawn draw_sound_job(std::uint64_t seed) {
  for (;; seed += 1000) {
    try {
      return draw_job(seed);
    } catch (const config::InputError&) {
    }
  }
}

TEST_P(FoldedEqualsAllOnAnyCluster, StepAndPhases) {
  for (int i = 0; i < 4; ++i) {
    Drawn drawn = draw_sound_job(static_cast<std::uint64_t>(4 * GetParam() + i));
    const sim::StepResult folded = sim::simulate_in_child(drawn.job);
    drawn.job.system.simulation.all_ranks = true;
    const sim::StepResult all = sim::simulate_in_child(drawn.job);
    EXPECT_NEAR(folded.step_s, all.step_s, 1e-9 * all.step_s) << drawn.text;
    for (std::size_t phase = 0; phase < sim::phase_count; ++phase) {
      EXPECT_NEAR(folded.mean.seconds[phase], all.mean.seconds[phase], 1e-9 * all.step_s)
          << sim::name_of(static_cast<sim::Phase>(phase)) << '\n'
          << drawn.text;
    }
  }
}

// Trunks that carry alike in one exchange carry other shares in the next: they are told apart by who sends to whom.
TEST(FoldedEqualsAllOnTrunks, LoadedUnevenly) {
  for (const char* dispatcher : {"alltoall", "hierarchical"}) {
    const std::string text = fmt::format(R"(
model: {{layers: 2, hidden: 512, heads: 8, kv_heads: 8, ffn: 1024, activation: gelu, vocab: 0, moe: {{experts: 4, top_k: 1, ffn: 512}}}}
cluster:{}
  gpus_per_node: 1
  nodes: 2
  intra_node: {{kind: none}}
  nics: {{per_node: 1, bandwidth: 200 Gbps, efficiency: 1, latency: 2 us}}
  network: {{kind: dragonfly, groups: 2, routers_per_group: 1, nodes_per_router: 1}}
  host: {{bandwidth: 20 GB/s, efficiency: 1, latency: 10 us}}
gpus: 2
parallel: {{ep: 2}}
batch: {{global: 32, micro: 1, sequence: 512}}
precision: bf16
optimizer: {{sharding: zero1}}
moe: {{routing: {{zipf: 0.5}}, dispatcher: {}}}
)",
                                         small_gpu("{tp: {alpha: 1, beta: 1}}"), dispatcher);
    sim::Job job = sim::read_job(config::Node::load_text(text, "trunks.yaml"), "trunks");
    const double folded_s = sim::simulate_in_child(job).step_s;
    job.system.simulation.all_ranks = true;
    const double all_s = sim::simulate_in_child(job).step_s;
    EXPECT_NEAR(folded_s, all_s, 1e-9 * all_s) << dispatcher;
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, FoldedEqualsAllOnAnyCluster, testing::Range(0, 24));

}  // namespace
}  // namespace rehearse::tests
