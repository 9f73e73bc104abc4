// Random small jobs, dense and with experts, over everything that a job can switch on; on one switch, or on any network.
#pragma once

#include <algorithm>
#include <random>
#include <string>

#include "config/input_error.hpp"
#include "tests/engine/jobs.hpp"

namespace rehearse::tests {

inline sim::Job job_of(const std::string& text) { return sim::read_job(config::Node::load_text(text, "random.yaml"), "random"); }

class RandomJobs {
 public:
  // any: nodes of 1 to 8 GPUs with shared, own or bundled NICs, behind leaves of one to four nodes, rails, trees or on cables; ranks in any
  // order, 2 to 8 replicas, sharded in groups.
  enum class Network : std::uint8_t { one_switch, any };
  explicit RandomJobs(unsigned seed, Network network = Network::one_switch)
      : random_(seed),
        adapters_(seed),
        apart_(seed),
        beside_(seed),
        experts_(seed),
        mixers_(seed),
        narrow_(seed),
        any_(network == Network::any) {}

  // The text of a job that is not refused, its last line open: "simulation: {collectives: ring".
  std::string next() {
    std::string text = draw();
    while (refused(text)) text = draw();
    return text;
  }

 private:
  static bool refused(const std::string& job) {
    try {
      (void)job_of(job + "}\n");
      return false;
    } catch (const config::InputError&) {
      return true;
    }
  }
  std::string draw() {
    moe_ = pick({0, 0, 1}) == 1;
    gated_ = moe_ && pick({0, 1, 1}) == 1;
    gated_dense_ = !moe_ && apart_() % 4 == 0;
    const int tp = pick({1, 1, 2, 4}), pp = pick({1, 1, 2, 4}), cp = tp * pp > 4 ? 1 : pick({1, 1, 2}),
              dp = any_ ? pick({2, 3, 4, 6, 8}) : pick({1, 2, 4});
    const std::string schedule =
        pp == 1 ? "1f1b" : pick<std::string>({"1f1b", "gpipe", "interleaved-1f1b", "zb-h1", "zb-h2", "zb-v", "dualpipe"});
    const int vpp = schedule == "interleaved-1f1b" || schedule == "zb-v" ? 2 : 1;
    const int microbatches = 2 * pp * pick({1, 1, 2});
    std::string text = model(8);
    text += "cluster:" + (any_ ? any_cluster() : one_switch()) + fmt::format("\ngpus: {}\n", tp * pp * cp * dp);
    text += parallel(tp, pp, cp, dp, vpp);
    const int sequence = pick({1024, 4096});
    text += fmt::format("schedule: {}\nbatch: {{global: {}, micro: 1, sequence: {}}}\n", schedule, microbatches * dp, sequence);
    text += "precision: " + precision();
    text += "\nrecompute: " + recompute(pick<std::string>({"none", "selective", "full", "{full_layers: 1}"}));
    const std::string updated = optimizer();
    text += "\noptimizer: " + updated;
    if (!moe_ && !updated.starts_with("{kind: muon")) text += lora();
    text += "\noverlap: " + overlap();
    if (moe_) text += routes();
    if (!moe_ && pick({0, 0, 0, 1}) == 1) text += "offload: {activations: true, layers: " + pick<std::string>({"all", "1", "2"}) + "}\n";
    text +=
        "cuda_graphs: " + pick<std::string>({"false", "false", "true", "[attn]", moe_ ? "[attn, moe_router, moe_preprocess]" : "[mlp]"});
    text += "\n";
    text += software(pick({0, 0, 1}) == 1);
    text += "simulation: {collectives: " + pick<std::string>({"ring", "auto", "closed", "step"});
    return text + (tp * pp * cp * dp <= 8 && flag() ? ", ranks: all" : "");
  }

  // One job in four, drawn apart as adapters are: modules, or parts of the inputs of layers.
  std::string recompute(const std::string& usual) {
    const std::uint32_t drawn = apart_();
    if (drawn % 4 != 0) return usual;
    if (whole_inputs_) return drawn / 4 % 2 == 0 ? "{shards_inputs: true}" : "{full_layers: 1, shards_inputs: true}";
    const char* modules[] = {"{modules: [mlp_act]}", "{modules: [layernorm, mlp_act]}", "{modules: [mlp]}", "{modules: [core_attn, mlp]}"};
    return moe_ && drawn / 4 % 2 == 0 ? "{modules: [moe_act, mlp_act]}" : modules[drawn / 8 % 4];
  }
  // older: one call per tensor with ZeRO-3, host launches. One in four is apart: operators in the place of fused kernels.
  std::string software(bool older) {
    if (older) return "software: megatron-2021\n";
    if (apart_() % 4 != 0) return merges_ ? "software: {like: megatron-core, merges_branches: true}\n" : "";
    return "software: {like: megatron-core, fusions: {activation: false, norm: false}, activation_kernels: {forward: 6, backward: 10}, "
           "activation_copies: {forward: 7, backward: 12.5}, activation_kept: 3}\n";
  }
  // Draws are statements of their own: the arguments of one call are evaluated in an order that the compiler chooses.
  std::string parallel(int tp, int pp, int cp, int dp, int vpp) {
    const bool sp = tp > 1 && (moe_ || flag());
    whole_inputs_ = tp > 1 && !sp;
    const std::string cp_comm = pick<std::string>({"ring", "all-gather", "all-to-all"});
    const std::string experts = moe_ ? fmt::format(", ep: {}, etp: 1", std::min(4, dp * tp * cp)) : "",
                      ranks = any_ && !moe_ ? order() : "";
    return fmt::format("parallel: {{tp: {}, pp: {}, cp: {}, dp: {}, vpp: {}, sp: {}, cp_comm: {}{}{}}}\n", tp, pp, cp, dp, vpp, sp, cp_comm,
                       experts, ranks);
  }
  std::string optimizer() {
    const std::string kind = pick<std::string>({"adam", "adam", "adam", "muon"}),
                      sharding = pick<std::string>({"none", "zero1", "zero2", "zero3"});
    const std::string groups = any_ && !moe_ && flag() ? fmt::format(", shard_group: {}", pick({1, 2, 3, 4})) : "";
    return fmt::format("{{kind: {}, sharding: {}{}}}", kind, sharding, groups);
  }
  // One job in four; drawn apart, so that all else is as without.
  std::string lora() {
    const std::uint32_t drawn = adapters_();
    if (drawn % 4 != 0) return "";
    const char* targets[] = {"[linear_qkv]", "[q_proj, v_proj]", "[linear_qkv, linear_proj, linear_fc1, linear_fc2]", "[down_proj]"};
    return fmt::format("\nlora: {{rank: {}, targets: {}, dropout: {}{}}}", drawn / 4 % 2 == 0 ? 8 : 64, targets[drawn / 8 % 4],
                       drawn / 32 % 2 == 0 ? "0" : "0.1", drawn / 64 % 2 == 0 ? "" : ", weights: fp32");
  }
  std::string overlap() {
    std::string text = "{";
    for (const char* key : {"tp", "cp", "pp", "dp_gradients", "dp_parameters"})
      text += fmt::format("{}{}: {}", text.size() > 1 ? ", " : "", key, flag());
    return text + (moe_ ? pairs() : "") + "}\n";
  }
  std::string one_switch() {
    const int nics = pick({1, 8});
    return small_cluster(nics, contention(), "{size: 2 TiB, bandwidth: 200 GB/s}");
  }
  template <class T>
  T pick(std::initializer_list<T> from) {
    return *(from.begin() + random_() % from.size());
  }
  bool flag() { return random_() % 2 == 0; }
  // One job with experts in three has other bits in them than in the rest; drawn apart.
  std::string precision() {
    const bool apart = moe_ && experts_() % 3 == 0;
    const char* recipes[] = {"delayed", "tensorwise", "blockwise", "mxfp8"};
    if (pick({0, 0, 1}) == 0) {
      return apart ? fmt::format("{{compute: bf16, experts: fp8, recipe: {}}}", recipes[experts_() % 4]) : "bf16";
    }
    const std::string attention = bits(), gathered = bits(), head = bits(),
                      recipe = pick<std::string>({recipes[0], recipes[1], recipes[2], recipes[3]});
    const bool narrow_input = gated_ && flag();
    const std::string more = apart ? ", experts: bf16" : narrow_input ? ", activation_input: fp8" : "";
    return fmt::format("{{compute: fp8, attention: {}, param_gather: {}, recipe: {}, head: {}{}}}", attention, apart ? "bf16" : gathered,
                       recipe, head, more);
  }
  std::string bits() { return pick<std::string>({"bf16", "fp8"}); }
  std::string pairs() { return pick<std::string>({"", "", ", ep: true", ", ep: true, delay_wgrad: true"}); }
  std::string routes() {
    const std::string dispatcher = pick<std::string>({"alltoall", "alltoall", "hierarchical", "allgather"}),
                      capacity = pick<std::string>({"none", "1", "1.5"}), filled = pick<std::string>({"none", "none", "48", "capacity"});
    return fmt::format("moe: {{dispatcher: {}, capacity_factor: {}, pad_to: {}}}\n", dispatcher, capacity, filled);
  }
  std::string contention() {
    if (flag()) return "{tp: {alpha: 1, beta: 1}}";
    return "{tp: {alpha: 1.3, beta: 1.1}, cp: {alpha: 1.05, beta: 1}, pp: {alpha: 1.1, beta: 1.2}, dp: {alpha: 1.2, beta: 1.1}, ep: "
           "{alpha: 1.2, beta: 1.1}, offload: {alpha: 1.1, beta: 1}}";
  }
  std::string order() {
    return pick<std::string>(
        {"", ", order: tp-cp-ep-pp-dp", ", order: tp-cp-ep-pp-dp", ", order: dp-tp-cp-ep-pp", ", order: pp-tp-cp-ep-dp"});
  }
  std::string any_cluster() {
    const int per_node = pick({1, 2, 2, 4, 8}), oversubscription = pick({1, 2, 4, 8});
    const std::string leaves = fmt::format("nodes_per_leaf: {}, oversubscription: {}", pick({1, 2, 3, 3, 4}), oversubscription);
    const std::string network = pick<std::string>(
        {"kind: single_switch", "kind: leaf_spine, " + leaves, "kind: leaf_spine, " + leaves, "kind: rail_optimised, " + leaves,
         fmt::format("kind: fat_tree, nodes_per_leaf: 1, nodes_per_pod: {}, oversubscription: {}, pod_oversubscription: 2", pick({2, 3}),
                     oversubscription),
         "kind: torus, dims: [4, 16], trunk: 100 Gbps"});
    const std::string gpu = small_gpu(contention());
    const int nics = pick({1, per_node, per_node, 2 * per_node}), gbps = pick({25, 100});
    return fmt::format(R"({}
  gpus_per_node: {}
  intra_node: {}
  nics: {{per_node: {}, bandwidth: {} Gbps, efficiency: 0.9, latency: 6 us}}
  network: {{{}}}
  host: {{bandwidth: 20 GB/s, efficiency: 1, latency: 10 us}}
  host_memory: {{size: 2 TiB, bandwidth: 200 GB/s}})",
                       gpu, per_node,
                       per_node == 1 ? "{kind: none}" : "{kind: nvswitch, bandwidth: 300 GB/s, efficiency: 0.8, latency: 3 us}", nics, gbps,
                       network);
  }
  std::string model(int layers) {
    const std::string unlike = mixers();
    const bool blocks = unlike.find("pattern") != std::string::npos;
    const std::string beside = moe_ ? "" : side_by_side();
    const std::string experts =
        (moe_ ? fmt::format(", moe: {{experts: 8, top_k: 2, ffn: 512, first_dense: {}{}}}", blocks ? 0 : 1, narrower()) : beside) +
        (beside.empty() ? unlike : "");
    return fmt::format(
        "model: {{layers: {}, hidden: 1024, heads: 16, kv_heads: 16, ffn: 4096, activation: {}, vocab: {}, positions: rope{}}}\n", layers,
        gated_ || gated_dense_ ? "swiglu" : "gelu", pick({0, 32000}), experts);
  }

  // Experts narrower than their layer, every third time; drawn apart.
  std::string narrower() { return narrow_() % 3 == 0 ? ", latent: 256" : ""; }

  // Layers that are not attention in one job in four, drawn apart; half of these have layers of one block each.
  std::string mixers() {
    const std::uint32_t drawn = mixers_();
    if (drawn % 4 != 0) return "";
    const char* kind = drawn / 4 % 2 == 0 ? "mamba2" : "gated_delta";
    const std::string gate = drawn / 8 % 4 == 0 ? ", attention_gate: true" : "";
    const std::string mixer = fmt::format(", mixer: {{kind: {}, heads: 16, head_dim: 64, groups: 8, state: 64", kind);
    const char* dense[] = {"M-M*-M-M", "M*M-MM-*"};
    const char* with_experts[] = {"MEM*EME-", "M-ME*EMM"};
    if (drawn / 32 % 2 == 0) return fmt::format("{}}}, pattern: {}{}", mixer, (moe_ ? with_experts : dense)[drawn / 64 % 2], gate);
    const char* every[] = {"0", "2", "4, first_attention: 1"};
    const bool attends = drawn / 64 % 3 > 0;
    return fmt::format("{}, attention_every: {}}}{}", mixer, every[drawn / 64 % 3], attends ? gate : "");
  }

  // Attention beside the MLP in one job in four, drawn apart as adapters are; half of the stacks sum both at once.
  std::string side_by_side() {
    const std::uint32_t drawn = beside_();
    merges_ = drawn % 8 == 0;
    if (drawn % 4 != 0) return "";
    return drawn / 8 % 2 == 0 ? ", parallel_residual: one_norm" : ", parallel_residual: two_norms";
  }

  std::mt19937 random_, adapters_, apart_, beside_, experts_, mixers_, narrow_;
  bool any_;
  bool moe_ = false, gated_ = false, gated_dense_ = false, whole_inputs_ = false, merges_ = false;
};

}  // namespace rehearse::tests
