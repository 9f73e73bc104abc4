// Reading platforms/gpus/*.yaml.
#include "sim/cost/gpu.hpp"

#include <array>

#include "sim/cost/cost_model.hpp"
#include "sim/cost/precision_names.hpp"
#include "sim/cost/software_keys.hpp"

namespace rehearse::sim {
namespace {

using config::Dimension;
using config::Key;
using config::Keys;
using config::Node;
using config::Shape;
using workloads::GroupedKernel;

const Keys<Gpu>& peak_keys() {
  static const Keys<Gpu> keys([] {
    std::vector<Key<Gpu>> all;
    for (const std::string& name : precision_names()) {
      const auto form = config::quantity(Dimension::compute_rate, 1e9);
      all.emplace_back(
          name, form.shape, [=](const Node& node, Gpu& gpu) { gpu.peak_flops_per_s[*precision_of(name)] = form.read(node); },
          std::function<Node(const Gpu&)>(), "Dense.");
    }
    return all;
  }());
  return keys;
}

void read_peaks(const Node& node, Gpu& gpu) {
  peak_keys().read(node, gpu);
  if (gpu.peak_flops_per_s.empty()) node.fail_at_key("at least one precision is needed", "write for example peak: {bf16: 312 TFLOP/s}");
}

// >= 1: both sides can only be slowed down by sharing.
const Keys<ContentionPair>& pair_keys() {
  using K = Key<ContentionPair>;
  static const Keys<ContentionPair> keys{
      K("alpha", &ContentionPair::alpha, config::number(1, 100), "The computation takes so many times as long meanwhile."),
      K("beta", &ContentionPair::beta, config::number(1, 100), "The communication takes so many times as long meanwhile."),
  };
  return keys;
}

const Keys<Gpu>& contention_keys() {
  static const Keys<Gpu> keys([] {
    std::vector<Key<Gpu>> all;
    for (const workloads::Phase phase : workloads::contended_phases) {
      all.emplace_back(
          std::string(workloads::names_of(phase).contention), pair_keys().shape(),
          [phase](const Node& node, Gpu& gpu) { gpu.contention[phase] = mapping(pair_keys()).read(node); },
          std::function<Node(const Gpu&)>(),
          "Of this class of communication and computation at the same time; left out: neither slows the other.");
    }
    return all;
  }());
  return keys;
}

// flash: {1: {64: 0.57, 128: 0.44}}: generation, head dimension, share of the attention line.
using Shares = std::map<int, double>;

Keys<Shares> shares_by_head(double most) {
  std::vector<Key<Shares>> all;
  for (const int head_dim : {32, 64, 96, 128, 192, 256}) {
    const auto form = config::number(1e-3, most);
    all.emplace_back(
        std::to_string(head_dim), form.shape, [=](const Node& node, Shares& shares) { shares[head_dim] = form.read(node); },
        std::function<Node(const Shares&)>(), "Of a kernel for this head dimension.");
  }
  return Keys<Shares>(std::move(all));
}

const Keys<Shares>& flash_share_keys() {
  static const Keys<Shares> keys = shares_by_head(2);
  return keys;
}

const Keys<Shares>& deterministic_share_keys() {
  static const Keys<Shares> keys = shares_by_head(1);
  return keys;
}

struct FlashKernel {
  int generation;
  const char* what;
};

constexpr std::array flash_kernels_of_gpus{FlashKernel{1, "Of FlashAttention-1."},
                                           FlashKernel{2, "Of FlashAttention-2."},
                                           FlashKernel{3, "Of FlashAttention-3."},
                                           FlashKernel{4, "Of FlashAttention-4."},
                                           FlashKernel{triton, "Of FlashAttention's kernel of 2022 in Triton."},
                                           FlashKernel{sdpa, "Of PyTorch's scaled_dot_product_attention."},
                                           FlashKernel{masked, "Of what takes a mask, over the whole square."}};

const Keys<Gpu>& flash_keys() {
  static const Keys<Gpu> keys([] {
    std::vector<Key<Gpu>> all;
    for (const FlashKernel& kernel : flash_kernels_of_gpus) {
      const auto read = [generation = kernel.generation](const Node& node, Gpu& gpu) {
        Shares& shares = gpu.flash_share[generation];
        flash_share_keys().read(node, shares);
        if (shares.empty()) node.fail_at_key("a head dimension is missing", "write for example 2: {64: 0.7, 128: 0.65}");
      };
      all.emplace_back(std::string(flash_kernels().of(kernel.generation)), flash_share_keys().shape(), read,
                       std::function<Node(const Gpu&)>(), kernel.what);
    }
    return all;
  }());
  return keys;
}

const Keys<Gpu>& grouped_keys() {
  static const Keys<Gpu> keys([] {
    std::vector<Key<Gpu>> all;
    const auto add = [&all](GroupedKernel kernel, const char* bits, auto shares, const char* what) {
      const auto form = config::number(1e-3, 2);
      const auto read = [=](const Node& node, Gpu& gpu) { (gpu.*shares)[kernel] = form.read(node); };
      all.emplace_back(std::string(grouped_kernels().of(kernel)) + bits, form.shape, read, std::function<Node(const Gpu&)>(), what);
    };
    add(GroupedKernel::torch, "", &Gpu::grouped_share, "Of PyTorch's own, in 16 bits.");
    add(GroupedKernel::megablox, "", &Gpu::grouped_share, "Of MaxText's Megablox.");
    add(GroupedKernel::megablox, "_fp8", &Gpu::narrow_grouped_share, "Of the same in 8 bits, where it is another.");
    add(GroupedKernel::streams, "", &Gpu::grouped_share, "Of one product for each expert, on several streams.");
    add(GroupedKernel::turbo, "", &Gpu::grouped_share, "Of Primus-Turbo's.");
    add(GroupedKernel::turbo, "_fp8", &Gpu::narrow_grouped_share, "Of the same in 8 bits, where it is another.");
    const auto rows = config::number(0, 65536);
    all.emplace_back(
        std::string(grouped_kernels().of(GroupedKernel::megablox)) + "_tile", rows.shape,
        [=](const Node& node, Gpu& gpu) { gpu.grouped_tile_rows[GroupedKernel::megablox] = rows.read(node); },
        std::function<Node(const Gpu&)>(), "Rows that it computes more for each expert: a tile's, on each device of a chip.");
    return all;
  }());
  return keys;
}

config::Form<double> launch_form() {
  return config::quantity(Dimension::time).checked([](const Node& node, double seconds) {
    if (seconds > 1) node.fail("a launch above 1 s", "launches are microseconds: write 3 us");
  });
}

const Keys<Gpu>& gpu_keys() {
  using K = Key<Gpu>;
  static const Keys<Gpu> keys{
      K(
          "source", config::text().shape, [](const Node& node, Gpu&) { static_cast<void>(node.as_string()); }, {},
          "Where the numbers come from.")
          .required(),
      K("vendor", &Gpu::vendor, config::text(), "Caches go from one vendor's to another's through the memory of both hosts."),
      K("memory", &Gpu::memory_bytes, config::quantity(Dimension::bytes, 1e6), "Its size.").required(),
      K("driver_memory", &Gpu::driver_bytes, config::quantity(Dimension::bytes, 0), "Of the memory, what the driver keeps for itself."),
      K("memory_bandwidth", &Gpu::memory_bytes_per_s, config::quantity(Dimension::bandwidth, 1e6), "By the data sheet.").required(),
      K("power_limit", &Gpu::power_limit_w, config::quantity(Dimension::power, 1), "By the data sheet.").required(),
      K("launch", &Gpu::launch_s, launch_form(), "Host time of one bare kernel launch.").required(),
      K("host_time", &Gpu::host_time, config::number(0.1, 10),
        "The processor on its board takes so many times as long to issue a kernel as an x86 server's."),
      K("atomic_adds", &Gpu::adds_per_s, config::quantity(Dimension::rate, 1e6), "To elements of 16 bits in its memory."),
      K("block_sum", &Gpu::block_sum_s, config::quantity(Dimension::time),
        "To add up what the blocks of a norm over heads have of its weight's gradient (sums_by_block of a stack)."),
      K("multiprocessors", &Gpu::multiprocessors, config::whole(1, 1024),
        "Whose number FlashAttention-2's deterministic backward goes by (deterministic of a stack).")
          .otherwise("132"),
      K("shared_memory", &Gpu::shared_memory_bytes, config::quantity(Dimension::bytes, 1024),
        "That a block of a kernel may have: how many keys a block of FlashAttention-2's backward has.")
          .otherwise("227 KiB"),
      K("any_order", &Gpu::any_order, config::truth(),
        "Products in 8 bits read both operands by rows or by columns: casts with one scale make no transposed copy."),
      K(
          "deterministic_attention", deterministic_share_keys().shape(),
          [](const Node& node, Gpu& gpu) {
            gpu.deterministic_attention.clear();
            deterministic_share_keys().read(node, gpu.deterministic_attention);
            if (gpu.deterministic_attention.empty()) node.fail_at_key("a head dimension is missing", "write for example {128: 0.63}");
          },
          {}, "Of the rate of other flash attention's backward, what a deterministic one reaches, by head dimension.")
          .otherwise("{128: 0.63}"),
      K("retaking", &Gpu::retaking_bytes_per_s, config::quantity(Dimension::bandwidth, 1e6),
        "At which its driver takes memory back from PyTorch's allocator and hands it out again, where memory is full."),
      K("eager", &Gpu::eager_share, config::number(0.1, 1), "Of the rate of memory-bound kernels, what PyTorch's own operators reach."),
      K("unaligned", &Gpu::unaligned_share, config::number(0.01, 1),
        "Of the rate of a linear layer's products, what those reach whose rows are no whole multiples of 16 bytes.")
          .otherwise("NVIDIA 0.36, others 1", [](Gpu& gpu) { gpu.unaligned_share = gpu.vendor == "nvidia" ? gpu.unaligned_share : 1; }),
      K("block_scaled", &Gpu::block_scaled_share, config::number(0.1, 1),
        "Of the rate of products in 8 bits, what those reach whose operands are scaled by blocks (mxfp8, blockwise)."),
      K("peak", peak_keys().shape(), read_peaks, {}, "By precision.").required(),
      K(
          "contention", contention_keys().shape(), [](const Node& node, Gpu& gpu) { contention_keys().read(node, gpu); }, {},
          "By class of communication: what it and computation cost each other."),
      K(
          "efficiency", efficiency_shape(), [](const Node& node, Gpu& gpu) { gpu.cost = read_efficiency(node, gpu); }, {},
          "By class of operators, and precision: how their time follows from their shape.")
          .otherwise("what calibrated GPUs have in common",
                     [](Gpu& gpu) {
                       gpu.by_data_sheet = true;
                       gpu.cost = common_efficiency(gpu);
                     }),
      K(
          "flash", flash_keys().shape(), [](const Node& node, Gpu& gpu) { flash_keys().read(node, gpu); }, {},
          "Other generations of flash attention: their rates over the attention line's, by head dimension."),
      K(
          "grouped", grouped_keys().shape(), [](const Node& node, Gpu& gpu) { grouped_keys().read(node, gpu); }, {},
          "Kernels that multiply rows sorted by expert: their rates over that of products."),
  };
  return keys;
}

}  // namespace

Shape gpu_shape() { return gpu_keys().shape(); }

Gpu read_gpu(const Node& node, const std::string& name) {
  Gpu gpu;
  gpu.name = name;
  gpu_keys().read(node, gpu);
  if (gpu.by_data_sheet) {  // what the file does not say itself
    Gpu common;
    contention_keys().read(common_contention_mapping(gpu), common);
    flash_keys().read(common_flash_mapping(gpu), common);
    gpu.contention.insert(common.contention.begin(), common.contention.end());
    gpu.flash_share.insert(common.flash_share.begin(), common.flash_share.end());
  }
  if (const auto given = node.find("driver_memory"); given && gpu.driver_bytes >= gpu.memory_bytes)
    given->fail("the driver keeps all of the memory", "of NVIDIA's GPUs it keeps 0.65 GiB");
  return gpu;
}

}  // namespace rehearse::sim
