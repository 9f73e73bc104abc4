// The `efficiency` mapping of a GPU file: which model prices which class of operators, per precision where precision matters.
#include <algorithm>
#include <array>
#include <limits>
#include <optional>

#include "sim/cost/cost_model.hpp"
#include "sim/cost/precision_names.hpp"

namespace rehearse::sim {
namespace {

using workloads::DType;
using workloads::OperatorClass;

struct ClassName {
  OperatorClass cls;
  const char* name;
  bool computes;  // has a line per precision; the others only move memory
  bool required;
  const char* means;
};
constexpr std::array<ClassName, 6> class_names{
    {{OperatorClass::gemm, "gemm", true, true, "Matrix products."},
     {OperatorClass::attention, "attention", true, true, "Fused attention."},
     {OperatorClass::memory_bound, "memory_bound", false, true, "Norms, activations, softmax, residuals, casts."},
     {OperatorClass::embedding, "embedding", false, false, "Looking tokens up; left out: as memory_bound."},
     {OperatorClass::loss, "loss", false, false, "Softmax and cross-entropy; left out: as memory_bound."},
     {OperatorClass::optimizer, "optimizer", false, false, "Updating weights; left out: as memory_bound."}}};

// Beside them, read on their own; operators of these classes.
constexpr std::array<ClassName, 2> few_token_names{
    {{OperatorClass::gemm, "gemm_few", true, false,
      "Products of inference, from one token on; left out: what calibrated GPUs have in common."},
     {OperatorClass::attention, "attention_cache", true, false,
      "One query a sequence against the keys and values before it; left out: what calibrated GPUs have in common."}}};

const ClassName& description_of(OperatorClass cls) { return *std::ranges::find(class_names, cls, &ClassName::cls); }

// fp16 and bf16 run on the same units at the same rate: one stands in for the other when only one was measured.
std::optional<DType> stand_in(DType type) {
  if (type == DType::fp16) return DType::bf16;
  if (type == DType::bf16) return DType::fp16;
  return std::nullopt;
}

class Table : public CostModel {
 public:
  explicit Table(std::string gpu) : gpu_(std::move(gpu)) {}
  void add(OperatorClass cls, DType type, std::shared_ptr<const CostModel> model) { computing_[{cls, type}] = std::move(model); }
  void add(OperatorClass cls, std::shared_ptr<const CostModel> model) { moving_[cls] = std::move(model); }
  [[nodiscard]] bool has(OperatorClass cls, DType type) const { return computing_.contains({cls, type}); }

  [[nodiscard]] double seconds(const workloads::Operator& op) const override { return model_of(op).seconds(op); }
  [[nodiscard]] bool prices(OperatorClass cls, DType type) const override { return !description_of(cls).computes || has(cls, type); }

 private:
  [[nodiscard]] const CostModel& model_of(const workloads::Operator& op) const {
    const ClassName& description = description_of(op.cls);
    if (!description.computes) {
      const auto own = moving_.find(op.cls);
      return own != moving_.end() ? *own->second : *moving_.at(OperatorClass::memory_bound);
    }
    if (const auto found = computing_.find({op.cls, op.dtype}); found != computing_.end()) return *found->second;
    throw config::InputError("GPU '" + gpu_ + "' has no efficiency for " + description.name + " in " + std::string(name_of(op.dtype)));
  }

  std::string gpu_;
  std::map<std::pair<OperatorClass, DType>, std::shared_ptr<const CostModel>> computing_;
  std::map<OperatorClass, std::shared_ptr<const CostModel>> moving_;
};

std::shared_ptr<const CostModel> read_model(const config::Node& node, const Ceiling& ceiling) {
  const std::string name = node.at("model").as_choice(CostModelRegistry::names());
  return CostModelRegistry::get(name).make(node, ceiling);
}

// Products in fp32 of a job in 16 bits (adapters): their share is one of the 16-bit peak where the GPU names none for fp32, which would say
// that it trains in fp32.
DType of_peak(const Gpu& gpu, OperatorClass cls, DType type) {
  if (cls != OperatorClass::gemm || type != DType::fp32 || gpu.peak_flops_per_s.contains(type)) return type;
  return gpu.peak_flops_per_s.contains(DType::bf16) ? DType::bf16 : DType::fp16;
}

Ceiling ceiling_of(const config::Node& node, const Gpu& gpu, OperatorClass cls, DType type) {
  const auto peak = gpu.peak_flops_per_s.find(of_peak(gpu, cls, type));
  if (peak == gpu.peak_flops_per_s.end()) node.fail_at_key("the GPU has no peak for " + std::string(name_of(type)));
  return {cls, peak->second, gpu.memory_bytes_per_s, gpu.unaligned_share};
}

void read_precisions(Table& table, const config::Node& node, const ClassName& description, const Gpu& gpu) {
  node.allow_keys(precision_names());
  for (const std::string& key : node.keys()) {
    const DType type = *precision_of(key);
    const config::Node entry = node.at(key);
    table.add(description.cls, type, read_model(entry, ceiling_of(entry, gpu, description.cls, type)));
  }
  if (node.keys().empty()) node.fail_at_key("a precision is missing", "write for example bf16: {model: roofline}");
}

// What a GPU whose file does not say reaches in fp32, of its 16-bit peak: data sheets have 0.03 (B200) to 0.07 (H100) without
// tensor cores; memory as the common line of 16 bits.
constexpr const char* products_in_fp32 = "{model: modified-roofline, compute: 0.05, memory: 0.47, knee: 2.05}";

void add_products_in_fp32(Table& table, const Gpu& gpu) {
  const DType type = of_peak(gpu, OperatorClass::gemm, DType::fp32);
  if (table.has(OperatorClass::gemm, DType::fp32) || type == DType::fp32 || !gpu.peak_flops_per_s.contains(type)) return;
  const config::Node entry = config::Node::load_text(products_in_fp32, "the products in fp32 of " + gpu.name);
  table.add(OperatorClass::gemm, DType::fp32, read_model(entry, ceiling_of(entry, gpu, OperatorClass::gemm, DType::fp32)));
}

// The model of a measured precision, with the peak of the one it stands in for.
void read_stand_ins(Table& table, const config::Node& node, OperatorClass cls, const Gpu& gpu) {
  for (const auto& [type, peak] : gpu.peak_flops_per_s) {
    const auto other = stand_in(type);
    if (!other || table.has(cls, type)) continue;
    if (const auto entry = node.find(name_of(*other))) table.add(cls, type, read_model(*entry, ceiling_of(*entry, gpu, cls, type)));
  }
  if (cls != OperatorClass::attention) return;
  // Where the file has no line for 8 or 4 bits softmax takes as long as ever, and so does all of it.
  const auto entry = node.find(name_of(DType::bf16));
  if (!entry || !gpu.peak_flops_per_s.contains(DType::bf16)) return;
  for (const DType type : {DType::fp8, DType::fp4}) {
    if (!table.has(cls, type)) table.add(cls, type, read_model(*entry, ceiling_of(*entry, gpu, cls, DType::bf16)));
  }
}

class OrElse : public CostModel {
 public:
  OrElse(Table own, std::shared_ptr<const CostModel> otherwise) : own_(std::move(own)), otherwise_(std::move(otherwise)) {}
  [[nodiscard]] double seconds(const workloads::Operator& op) const override {
    return own_.has(op.cls, op.dtype) ? own_.seconds(op) : otherwise_->seconds(op);
  }
  [[nodiscard]] bool prices(OperatorClass cls, DType type) const override { return own_.has(cls, type) || otherwise_->prices(cls, type); }

 private:
  Table own_;
  std::shared_ptr<const CostModel> otherwise_;
};

std::shared_ptr<const CostModel> read_few_tokens(const config::Node& node, const ClassName& description, const Gpu& gpu) {
  Table table(gpu.name);
  if (const auto entry = node.find(description.name)) {
    read_precisions(table, *entry, description, gpu);
    read_stand_ins(table, *entry, description.cls, gpu);
  }
  return std::make_shared<OrElse>(std::move(table), gpu.cost);
}

}  // namespace

FewTokenCosts read_few_token_costs(const std::optional<config::Node>& efficiency, const Gpu& gpu) {
  const config::Node common = common_efficiency_mapping(gpu);
  const auto read = [&](const ClassName& description) {
    const bool own = efficiency && efficiency->find(description.name);
    return read_few_tokens(own ? *efficiency : common, description, gpu);
  };
  return {read(few_token_names[0]), read(few_token_names[1])};
}

config::Shape efficiency_shape() {
  using config::Shape;
  const Shape model{.kind = Shape::Kind::mapping,
                    .keys = {{"model", {.kind = Shape::Kind::choice, .choices = CostModelRegistry::names()}, true, "", "Which formula."},
                             {"*", {}, false, "", "Its parameters (platform-formats.md)."}}};
  Shape by_precision{.kind = Shape::Kind::mapping};
  for (const std::string& name : precision_names())
    by_precision.keys.push_back({name, model, false, "", "Of operators in this precision."});
  Shape shape{.kind = Shape::Kind::mapping};
  for (const ClassName& description : class_names) {
    shape.keys.push_back({description.name, description.computes ? by_precision : model, description.required, "", description.means});
  }
  for (const ClassName& description : few_token_names) shape.keys.push_back({description.name, by_precision, false, "", description.means});
  return shape;
}

std::shared_ptr<const CostModel> read_efficiency(const config::Node& node, const Gpu& gpu) {
  std::vector<std::string> known;
  known.reserve(class_names.size() + few_token_names.size());
  for (const ClassName& description : class_names) known.emplace_back(description.name);
  for (const ClassName& description : few_token_names) {
    known.emplace_back(description.name);
    if (node.find(description.name))
      static_cast<void>(read_few_tokens(node, description, gpu));  // what is wrong is found where it is read first
  }
  node.allow_keys(known);
  for (const ClassName& description : class_names) {
    if (description.required) static_cast<void>(node.at(description.name));
  }
  auto table = std::make_shared<Table>(gpu.name);
  for (const ClassName& description : class_names) {
    const auto entry = node.find(description.name);
    if (!entry) continue;
    if (!description.computes) {
      table->add(description.cls, read_model(*entry, {description.cls, std::numeric_limits<double>::infinity(), gpu.memory_bytes_per_s}));
      continue;
    }
    read_precisions(*table, *entry, description, gpu);
    read_stand_ins(*table, *entry, description.cls, gpu);
    if (description.cls == OperatorClass::gemm) add_products_in_fp32(*table, gpu);
  }
  return table;
}

}  // namespace rehearse::sim
