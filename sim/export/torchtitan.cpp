// torchtitan's TOML, in the names of its versions of 2025.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <ostream>
#include <string>
#include <vector>

#include "sim/export/exporter.hpp"
#include "sim/import/torchtitan_flavours.hpp"
#include "workloads/names.hpp"

namespace rehearse::sim {
namespace {

using workloads::DType;
using workloads::Workload;

class Toml {
 public:
  explicit Toml(std::ostream& out) : out_(out) {}
  void table(std::string_view name) { out_ << fmt::format("\n[{}]\n", name); }
  void text(std::string_view key, std::string_view value) { out_ << fmt::format("{} = \"{}\"\n", key, value); }
  void texts(std::string_view key, const std::vector<std::string>& values) {
    out_ << fmt::format("{} = [\"{}\"]\n", key, fmt::join(values, "\", \""));
  }
  void number(std::string_view key, std::int64_t value) { out_ << fmt::format("{} = {}\n", key, value); }
  void truth(std::string_view key, bool value) { out_ << fmt::format("{} = {}\n", key, value); }

 private:
  std::ostream& out_;
};

// By what the job calls its model: a changed one is another.
const TorchtitanFlavour* flavour_of(const Job& job) {
  const auto named = std::ranges::find(torchtitan_flavours, job.workload.model.name, &TorchtitanFlavour::model);
  return named == torchtitan_flavours.end() ? nullptr : &*named;
}

// Linear modules and experts' grouped products have converters of their own.
std::vector<std::string> converters(const Workload& work) {
  const bool linear = work.precision.compute == DType::fp8, experts = work.model.moe && work.precision.of_experts() == DType::fp8;
  const std::string scaled = work.precision.recipe == workloads::Scaling::mxfp8 ? "mx" : "float8";
  std::vector<std::string> all;
  if (linear) all.push_back("quantize.linear." + scaled);
  if (experts) all.push_back("quantize.grouped_mm." + scaled);
  return all;
}

void write_model(const Job& job, Toml& toml) {
  const TorchtitanFlavour* flavour = flavour_of(job);
  const std::vector<std::string> narrow = converters(job.workload);
  if (flavour == nullptr && narrow.empty()) return;
  toml.table("model");
  if (flavour != nullptr) {
    toml.text("name", flavour->name);
    toml.text("flavor", flavour->flavour);
  }
  if (!narrow.empty()) toml.texts("converters", narrow);
}

void write_training(const Workload& work, Toml& toml) {
  const int local = work.parallel.pp == 1 ? work.batch.micro : work.batch.global / work.parallel.dp;
  toml.table("training");
  toml.number("local_batch_size", local);
  toml.number("global_batch_size", work.batch.global);
  toml.number("seq_len", work.batch.sequence);
  if (work.precision.compute == DType::fp32) toml.text("mixed_precision_param", "float32");
  toml.text("mixed_precision_reduce", work.precision.gradients == DType::fp32 ? "float32" : "bfloat16");
}

// Without sharding every replica is whole; else replicas of groups that shard.
int replicas_of(const Workload& work) {
  const workloads::Optimizer& optimizer = work.optimizer;
  if (optimizer.zero_stage == 0) return work.parallel.dp;
  if (optimizer.shard_group == 0) return 1;
  return std::max(1, work.parallel.dp * work.parallel.cp / optimizer.shard_group);
}

std::string_view schedule_of(const Workload& work) {
  if (work.schedule == "gpipe") return "GPipe";
  if (work.schedule == "zb-v") return "ZBVZeroBubble";
  return work.parallel.vpp > 1 ? "Interleaved1F1B" : "1F1B";
}

void write_parallelism(const Workload& work, Toml& toml) {
  const workloads::Parallel& parallel = work.parallel;
  const int replicas = replicas_of(work);
  toml.table("parallelism");
  toml.number("data_parallel_replicate_degree", replicas);
  toml.number("data_parallel_shard_degree", parallel.dp / replicas);
  toml.text("fsdp_reshard_after_forward", work.optimizer.zero_stage == 3 ? "always" : "never");
  toml.number("tensor_parallel_degree", parallel.tp);
  toml.truth("enable_async_tensor_parallel", work.overlap.tp && parallel.tp > 1);
  toml.number("pipeline_parallel_degree", parallel.pp);
  if (parallel.pp > 1) toml.text("pipeline_parallel_schedule", schedule_of(work));
  if (parallel.pp > 1) toml.number("pipeline_parallel_microbatch_size", work.batch.micro);
  toml.number("context_parallel_degree", parallel.cp);
  if (parallel.cp > 1)
    toml.text("context_parallel_rotate_method", parallel.cp_comm == workloads::ContextComm::ring ? "alltoall" : "allgather");
  if (!work.model.moe) return;
  toml.number("expert_parallel_degree", parallel.ep);
  if (parallel.ep > 1) toml.number("expert_tensor_parallel_degree", parallel.etp);
}

void write_recompute(const Workload& work, Toml& toml) {
  using workloads::RecomputeKind;
  const RecomputeKind kind = work.recompute.kind;
  toml.table("activation_checkpoint");
  toml.text("mode", kind == RecomputeKind::none ? "none" : kind == RecomputeKind::full ? "full" : "selective");
  if (kind == RecomputeKind::selective) toml.text("selective_ac_option", "op");
}

// It takes a recipe, or gathers what is scaled by tensor in 8 bits.
void write_float8(const workloads::Precision& precision, Toml& toml) {
  const bool rows = by_rows(precision.recipe), gathers = precision.param_gather == DType::fp8;
  if (precision.compute != DType::fp8 || (!rows && !gathers)) return;
  toml.table("float8");
  if (rows) return toml.text("recipe_name", workloads::scalings.of(precision.recipe));
  toml.truth("enable_fsdp_float8_all_gather", true);
}

void write_job(const Job& job, std::ostream& out) {
  out << "# " << job.name << ". Data, tokenizer and learning rate are yours to add.\n";
  Toml toml(out);
  write_model(job, toml);
  write_float8(job.workload.precision, toml);
  write_training(job.workload, toml);
  write_parallelism(job.workload, toml);
  write_recompute(job.workload, toml);
  toml.table("compile");
  toml.truth("enable", job.system.software.kernels.compiled);
  toml.table("optimizer");
  toml.text("name", "AdamW");
}

class TorchtitanToml final : public Exporter {
 public:
  [[nodiscard]] std::string_view summary() const override { return "torchtitan: a TOML file"; }
  [[nodiscard]] std::string_view read_by() const override { return "torchtitan"; }
  [[nodiscard]] std::vector<ExportedFile> files(const Job& job) const override {
    return {{"", [&job](std::ostream& out) { write_job(job, out); }}};
  }
};

const ExporterRegistry::Registration<TorchtitanToml> torchtitan_toml_registration("torchtitan");

}  // namespace
}  // namespace rehearse::sim
