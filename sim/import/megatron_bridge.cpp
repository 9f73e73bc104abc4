// Megatron-Bridge: a matrix of performance settings (one cell is a job), or a whole ConfigContainer as it prints it.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>

#include "sim/import/importer.hpp"
#include "sim/import/megatron_arguments.hpp"

namespace rehearse::sim {
namespace {

using config::Node;

// Recipes by the name of their file, and machines by the name of their GPU, that are ready-made here.
constexpr std::array models{
    std::pair{"llama3_8b", "llama3-8b"},         std::pair{"llama3_70b", "llama3-70b"},           std::pair{"llama31_405b", "llama3-405b"},
    std::pair{"llama3_405b", "llama3-405b"},     std::pair{"deepseek_v3", "deepseek-v3"},         std::pair{"kimi_k2", "kimi-k2"},
    std::pair{"qwen3_30b_a3b", "qwen3-30b-a3b"}, std::pair{"qwen3_235b_a22b", "qwen3-235b-a22b"}, std::pair{"gpt_oss_120b", "gpt-oss-120b"},
};
constexpr std::array clusters{
    std::pair{"h100", "dgx-h100-ndr400"}, std::pair{"b200", "dgx-b200-ndr400"}, std::pair{"b300", "dgx-b300-xdr800"},
    std::pair{"gb200", "gb200-nvl72"},    std::pair{"gb300", "gb300-nvl72"},
};

// All cells as machine/size/precision.
std::vector<std::string> cells_of(const Node& matrix) {
  std::vector<std::string> all;
  for (const std::string& gpu : matrix.keys()) {
    for (const std::string& size : matrix.at(gpu).keys()) {
      for (const std::string& precision : matrix.at(gpu).at(size).keys()) {
        if (precision != "common") all.push_back(fmt::format("{}/{}/{}", gpu, size, precision));
      }
    }
  }
  return all;
}

std::string chosen(const Node& matrix, const std::string& part) {
  const std::vector<std::string> cells = cells_of(matrix);
  if (cells.empty()) matrix.fail("the matrix has no cell");
  if (part.empty() && cells.size() == 1) return cells.front();
  if (std::ranges::find(cells, part) != cells.end()) return part;
  if (part.empty()) matrix.fail("the file has several jobs: --part says which", config::suggestion("", cells));
  throw config::InputError(fmt::format("--part: no cell '{}'", part), config::suggestion(part, cells));
}

// A setting of the cell, or of what its machine and size have in common.
class Cell {
 public:
  Cell(const Node& matrix, const std::string& path) {
    const std::size_t first = path.find('/'), last = path.rfind('/');
    const Node of_size = matrix.at(path.substr(0, first)).at(path.substr(first + 1, last - first - 1));
    own_ = of_size.at(path.substr(last + 1));
    common_ = of_size.find("common").value_or(Node());
    static_cast<void>(own_.keys());  // refuses what is no mapping
    if (common_) static_cast<void>(common_.keys());
  }
  std::optional<Node> take(const std::string& key) {
    taken_.push_back(key);
    for (const Node& map : {own_, common_}) {
      const auto found = map && map.is_map() ? map.find(key) : std::nullopt;
      if (found) return found->is_null() ? std::nullopt : found;
    }
    return std::nullopt;
  }
  bool flag(const std::string& key) {
    const auto found = take(key);
    return found && found->as_bool();
  }
  [[nodiscard]] std::vector<std::string> left() const {
    std::vector<std::string> out;
    for (const Node& map : {common_, own_}) {
      if (!map || !map.is_map()) continue;
      for (const std::string& key : map.keys()) {
        if (std::ranges::find(taken_, key) == taken_.end() && std::ranges::find(out, key) == out.end()) out.push_back(key);
      }
    }
    return out;
  }

 private:
  Node own_, common_;
  std::vector<std::string> taken_;
};

void read_names(const std::string& path, const std::string& gpu, Draft& draft) {
  const std::string file = std::filesystem::path(path).filename().string();
  const auto model = std::ranges::find_if(models, [&](const auto& known) { return file.starts_with(known.first); });
  if (model != models.end()) {
    draft.set("model", model->second);
    draft.infer(fmt::format("model: {}, by the file's name", model->second));
  } else {
    draft.need("model", "the file's name is not of a ready-made one (rehearse list models)");
  }
  const auto cluster = std::ranges::find_if(clusters, [&](const auto& known) { return gpu == known.first; });
  if (cluster == clusters.end())
    return draft.need("cluster", fmt::format("'{}' is not among the ready-made ones (rehearse list clusters)", gpu));
  draft.set("cluster", cluster->second);
  draft.infer(fmt::format("cluster: {}, of {}", cluster->second, gpu));
}

void read_degrees(Cell& cell, Draft& draft) {
  for (const char* key : {"tp", "pp", "cp", "ep", "etp"}) {
    if (const auto value = cell.take(key)) draft.set(std::string("parallel.") + key, *value);
  }
  const auto degree = [&](const char* key) {
    const auto value = draft.document().find_path(key);
    return value ? value->as_int(1, 1'000'000) : 1;
  };
  const std::int64_t tp = degree("parallel.tp"), pp = degree("parallel.pp");
  const auto chunks = cell.take("vp");
  const bool looped = chunks && pp > 1 && chunks->as_int(1, 1000) > 1;
  if (looped) draft.set("parallel.vpp", *chunks);
  if (tp > 1) draft.set("parallel.sp", "true");
  if (pp > 1) draft.set("overlap.pp", looped ? "true" : "false");
  if (tp > 1) draft.set("overlap.tp", "true");
  if (tp > 1) draft.infer("parallel.sp and overlap.tp: true, as these recipes have them with tensor parallelism");
}

// How the names of cells cast products: scripts/performance/utils/precision.py, whose recipes are of
// src/megatron/bridge/training/mixed_precision.py (NVIDIA-NeMo/Megatron-Bridge); the older page called sub-channel scaling ss. fp8_cs drops
// its recipe's layers in bf16 there.
struct NamedPrecision {
  std::string_view name, compute, recipe;
  bool gathers = false;  // parameters in 8 bits; those of mxfp8 are gathered in 16 (megatron_precision.cpp)
};
constexpr std::array precisions{
    NamedPrecision{"bf16", "bf16", ""},
    NamedPrecision{"fp8_ds", "fp8", "delayed", true},
    NamedPrecision{"fp8_cs", "fp8", "tensorwise", true},
    NamedPrecision{"fp8_mx", "fp8", "mxfp8"},
    NamedPrecision{"fp8_sc", "fp8", "blockwise"},
    NamedPrecision{"fp8_ss", "fp8", "blockwise"},
    NamedPrecision{"nvfp4", "fp4", "nvfp4"},
};

void read_precision(const std::string& name, Draft& draft) {
  const auto known = std::ranges::find(precisions, name, &NamedPrecision::name);
  if (known == precisions.end()) {
    const char* compute = name.starts_with("fp8") ? "fp8" : name.find("fp4") != std::string::npos ? "fp4" : "bf16";
    draft.puzzle(fmt::format("the cell's precision {} (taken for {})", name, compute));
    draft.set("precision.compute", compute);
  } else {
    draft.set("precision.compute", std::string(known->compute));
    if (!known->recipe.empty()) draft.set("precision.recipe", std::string(known->recipe));
    if (known->gathers) draft.set("precision.param_gather", "fp8");
  }
  draft.set("precision.gradients", "bf16");
  draft.infer("precision.gradients: bf16, as these recipes reduce them");
}

void read_rest(Cell& cell, const std::string& precision, Draft& draft) {
  for (const auto& [from, to] :
       {std::pair{"mbs", "batch.micro"}, std::pair{"gbs", "batch.global"}, std::pair{"seq_length", "batch.sequence"}}) {
    const auto value = cell.take(from);
    value ? draft.set(to, *value) : draft.need(to, fmt::format("the cell has no {}", from));
  }
  read_precision(precision, draft);
  const bool fsdp = cell.flag("use_megatron_fsdp");
  draft.set("optimizer.sharding", fsdp ? "zero3" : "zero1");
  draft.set("overlap.dp_gradients", "true");
  draft.set("overlap.dp_parameters", "true");
  draft.infer("optimizer.sharding and overlaps of dp: as these recipes have them");
  if (const auto layers = cell.take("recompute_num_layers")) {  // of each virtual stage
    const auto chunks = draft.document().find_path("parallel.vpp");
    chunks ? draft.set("recompute.full_layers", chunks->as_int(1, 1000) * layers->as_int(1, 10'000))
           : draft.set("recompute.full_layers", *layers);
  }
  if (const auto modules = cell.take("recompute_modules")) draft.set("recompute.modules", *modules);
  if (cell.flag("cuda_graphs")) draft.set("cuda_graphs", "true");
  if (cell.flag("moe_a2a_overlap")) draft.set("overlap.ep", "true");
  if (const auto offloaded = cell.take("activation_offload_layers"); offloaded && offloaded->as_int(0, 10'000) > 0) {
    draft.set("offload.activations", "true");
    draft.set("offload.layers", *offloaded);
  }
  static_cast<void>(cell.take("num_gpus_per_node"));
  for (const std::string& key : cell.left()) draft.puzzle(key);
}

Draft read_matrix(const Node& file, const ImportRequest& request) {
  const Node matrix = file.at("perf_matrix");
  const std::string path = chosen(matrix, request.part);
  const std::size_t first = path.find('/'), last = path.rfind('/');
  const std::string size = path.substr(first + 1, last - first - 1);
  Draft draft(Draft::Kind::job);
  draft.infer(fmt::format("the cell {}", path));
  Cell cell(matrix, path);
  read_names(request.path, path.substr(0, first), draft);
  const std::string digits = size.substr(size.rfind('_') + 1);
  const bool number = !digits.empty() && digits.size() < 8 && digits.find_first_not_of("0123456789") == std::string::npos;
  if (!number)
    matrix.at(path.substr(0, first)).at(size).fail_at_key(fmt::format("'{}' does not end in a number of GPUs", size), "num_gpus_64");
  draft.set("gpus", digits);
  read_degrees(cell, draft);
  read_rest(cell, path.substr(last + 1), draft);
  for (const std::string& key : file.keys()) {
    if (key != "perf_matrix") draft.ignore(key);
  }
  return draft;
}

constexpr std::array sections{"mixed_precision", "comm_overlap", "model", "train", "ddp", "optimizer", "dist", "dataset"};

// LoRA and CanonicalLoRA, whose targets a job calls as they do. What their results are scaled by, and how they begin, takes no time.
void read_adapters(const Node& container, Draft& draft) {
  const auto peft = container.find("peft");
  if (!peft || peft->is_null()) return;
  const auto kind = peft->find("_target_");
  if (kind && !kind->as_string().ends_with("LoRA")) kind->fail("adapters other than LoRA are not simulated");
  for (const auto& [from, to] :
       {std::pair{"dim", "lora.rank"}, std::pair{"target_modules", "lora.targets"}, std::pair{"dropout", "lora.dropout"}}) {
    if (const auto value = peft->find(from); value && !value->is_null()) draft.set(to, *value);
  }
  for (const std::string& key : peft->keys()) {
    const bool taken = key == "_target_" || key == "dim" || key == "target_modules" || key == "dropout";
    if (!taken) draft.ignore("peft." + key);
  }
}

// Sections whose fields are Megatron's arguments; where two say something the first counts, as mixed_precision overrides model and ddp.
Draft read_container(const Node& container) {
  std::map<std::string, Node> fields;
  std::vector<std::string> order;
  for (const char* section : sections) {
    const auto found = container.find(section);
    if (!found || found->is_null()) continue;
    for (const std::string& key : found->keys()) {
      Node value = found->at(key);
      if (value.is_map() && value.find("_target_")) value = value.at("_target_");
      if (key == "_target_") continue;
      std::string name = key;
      std::ranges::replace(name, '_', '-');
      const bool off = value.is_null() || (value.is_scalar() && value.as_string() == "false");
      const bool wanted = std::string_view(section) != "dataset" || key == "seq_length";
      if (!wanted || value.is_map() ||
          (off && name != "add-bias-linear" && name != "share-embeddings-and-output-weights" && name != "grad-reduce-in-fp32"))
        continue;
      if (fields.emplace(name, value).second) order.push_back(name);
    }
  }
  Draft draft(Draft::Kind::job);
  MegatronArguments arguments;
  for (const std::string& name : order) arguments.add(name, fields.at(name));
  if (arguments.has("num-query-groups")) arguments.add("group-query-attention", Node::scalar("true"));
  if (const auto reduced = fields.find("grad-reduce-in-fp32"); reduced != fields.end()) {
    static_cast<void>(arguments.take("grad-reduce-in-fp32"));
    if (reduced->second.as_string() == "false") arguments.add("grad-reduce-in-bf16", Node::scalar("true"));
  }
  for (const std::string& key : container.keys()) {
    if (key != "peft" && std::ranges::find(sections, key) == sections.end()) draft.ignore(key);
  }
  read_megatron_arguments(arguments, 0, draft);
  read_adapters(container, draft);
  return draft;
}

class MegatronBridge final : public Importer {
 public:
  [[nodiscard]] std::string_view summary() const override {
    return "Megatron-Bridge: a matrix of performance settings, or a ConfigContainer";
  }
  [[nodiscard]] bool has_parts() const override { return true; }
  [[nodiscard]] Draft read(const ImportRequest& request) const override {
    const Node file = Node::load_file(request.path);
    if (file.is_map() && file.find("perf_matrix")) return read_matrix(file, request);
    const auto container = file.is_map() ? file.find("ConfigContainer") : std::nullopt;
    const Node root = container.value_or(file);
    static_cast<void>(root.at("model"));
    return read_container(root);
  }
};

const ImporterRegistry::Registration<MegatronBridge> megatron_bridge_registration("megatron-bridge");

}  // namespace
}  // namespace rehearse::sim
