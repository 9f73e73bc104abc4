// Products of routed experts in another precision than the others: what multiplies, is cast, travels and is refused.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "config/input_error.hpp"
#include "jobs.hpp"
#include "workloads/expert_layer.hpp"
#include "workloads/stage_program.hpp"

namespace rehearse::tests {
namespace {

using workloads::DType;
using workloads::LayerKind;
using workloads::Pass;
using workloads::Workload;

sim::Job job_in(const std::string& precision, const char* rest = "parallel: {dp: 8, ep: 8}\n", const char* model = "qwen3-30b-a3b",
                const char* cluster = "dgx-h100-ndr400") {
  const std::string text =
      fmt::format("model: {}\ncluster: {}\ngpus: 8\nbatch: {{global: 32, micro: 1, sequence: 4096}}\nprecision: {}\n{}", model, cluster,
                  precision, rest);
  return sim::read_job(config::Node::load_text(text, "job.yaml"), "job");
}

// Types of products, and whether any of them is cast before.
struct Multiplied {
  std::set<DType> types;
  bool casts = false;
};
void add(const workloads::Operator& op, Multiplied& to) {
  if (op.cls == workloads::OperatorClass::gemm && op.name != "router") to.types.insert(op.dtype);
  to.casts = to.casts || op.name.ends_with(" cast");
}

// Of the routed experts (forward and backward), and of all else in their layer.
std::pair<Multiplied, Multiplied> precisions(const char* precision) {
  const sim::Job job = job_in(precision);
  Multiplied experts, others;
  for (const Pass pass : {Pass::forward, Pass::backward_input}) {
    for (const workloads::Operator& op :
         workloads::operators_of(job.workload, workloads::ExpertLayer(job.workload).work({pass, pass == Pass::backward_input}, 0, 0, 0)))
      add(op, experts);
  }
  const workloads::BlockProgram layer = workloads::layer_program(job.workload, false, LayerKind::experts);
  for (const auto& items : {layer.forward, layer.backward}) {
    for (const workloads::Item& item : items) {
      if (const auto* op = std::get_if<workloads::Operator>(&item)) add(*op, others);
    }
  }
  return {experts, others};
}

// torchao's grouped products in MXFP8 beside linear layers in 16 bits, and float8 linear layers beside experts in 16.
TEST(ExpertPrecision, MultiplyInAPrecisionOfTheirOwn) {
  const std::set<DType> narrow{DType::fp8}, wide{DType::bf16};
  const auto [experts, others] = precisions("{experts: fp8}");
  EXPECT_EQ(experts.types, narrow);
  EXPECT_TRUE(experts.casts);
  EXPECT_EQ(others.types, wide);
  EXPECT_FALSE(others.casts);
  const auto [left_out, linear] = precisions("{compute: fp8, experts: bf16}");
  EXPECT_EQ(left_out.types, wide);
  EXPECT_FALSE(left_out.casts);
  EXPECT_EQ(linear.types, narrow);
  EXPECT_TRUE(linear.casts);
}

// Tokens travel in 8 bits where experts multiply them so.
TEST(ExpertPrecision, GetTheirTokensAsTheyMultiplyThem) {
  const auto bytes = [](const char* precision) {
    const sim::Job job =
        job_in(precision, "parallel: {dp: 8, ep: 8}\nsoftware: {like: megatron-core, experts: {low_precision_dispatch: true}}\n");
    const workloads::ExpertLayer layer(job.workload);
    double bytes = 0;  // of tokens, beside which their numbers are few
    for (const workloads::Communication& call : layer.calls(Pass::forward, 0, 0, 0).dispatch) bytes = std::max(bytes, call.bytes);
    return bytes;
  };
  EXPECT_EQ(bytes("{experts: fp8}"), bytes("bf16") / 2);
  EXPECT_EQ(bytes("{compute: fp8, experts: bf16}"), bytes("bf16"));
  EXPECT_EQ(bytes("fp8"), bytes("bf16") / 2);
}

// The part of the weights that is multiplied in 8 bits is cast for it, once a step: read in 16 bits, written twice in 8.
TEST(ExpertPrecision, HaveTheirWeightsCastOnceAStep) {
  const auto cast = [](const char* precision) {
    Workload w = job_in(precision).workload;
    w.fusions.casts_weights = true;
    double bytes = 0;
    for (const workloads::Operator& op : workloads::optimizer_program(w, 1e9, {.layers = 1e9, .experts = 9e8}).update)
      bytes += op.name == "weights_cast" ? op.bytes : 0;
    return bytes;
  };
  EXPECT_DOUBLE_EQ(cast("fp8"), 1e9 * (2 + 2));
  EXPECT_DOUBLE_EQ(cast("{experts: fp8}"), 9e8 * (2 + 2));
  EXPECT_DOUBLE_EQ(cast("{compute: fp8, experts: bf16}"), 1e8 * (2 + 2));
  EXPECT_EQ(cast("bf16"), 0);
}

std::string refused(const char* model, const char* cluster, const std::string& precision, const std::string& more = "") {
  try {
    (void)job_in(precision.c_str(), ("parallel: {dp: 8}\n" + more).c_str(), model, cluster);
  } catch (const config::InputError& error) {
    return error.message();
  }
  return "accepted";
}

TEST(ExpertPrecision, RefuseAPrecisionThatCannotBe) {
  EXPECT_EQ(refused("qwen3-30b-a3b", "dgx-h100-ndr400", "{experts: fp8, recipe: blockwise}"), "accepted");
  EXPECT_EQ(refused("llama3-8b", "dgx-h100-ndr400", "{experts: fp8}"), "model 'llama3-8b' has no experts");
  EXPECT_NE(refused("qwen3-30b-a3b", "dgx-a100-80g-hdr200", "{experts: fp8}").find("does not compute in fp8"), std::string::npos);
  EXPECT_EQ(refused("qwen3-30b-a3b", "dgx-h100-ndr400", "{experts: fp16}"),
            "products of experts in fp16 beside others in bf16 are not simulated by this version");
  // Experts' weights are gathered with the others', and read in 16 bits.
  EXPECT_EQ(refused("qwen3-30b-a3b", "dgx-h100-ndr400", "{compute: fp8, experts: bf16, param_gather: fp8}"),
            "precision.param_gather fp8 has fewer bits than products in bf16");
  EXPECT_EQ(refused("qwen3-30b-a3b", "dgx-h100-ndr400", "{compute: fp8, param_gather: fp8}"), "accepted");
  // torchao casts rows behind the gather.
  EXPECT_EQ(refused("llama3-8b", "dgx-h100-ndr400", "{compute: fp8, recipe: rowwise, param_gather: fp8}", "software: torchtitan\n"),
            "weights that are scaled by row are not gathered in fp8");
  EXPECT_EQ(refused("llama3-8b", "dgx-h100-ndr400", "{compute: fp8, recipe: rowwise}", "software: torchtitan\n"), "accepted");
  // Transformer Engine has no such recipe.
  for (const char* recipe : {"rowwise", "rowwise_with_gw_hp"})
    EXPECT_EQ(
        refused("llama3-8b", "dgx-h100-ndr400", fmt::format("{{compute: fp8, recipe: {}}}", recipe)),
        fmt::format("stack 'megatron-core' has no recipe {}, which is torchao's: it casts weights once a step (casts_weights)", recipe));
  // Libraries have no flash attention in fp32.
  EXPECT_EQ(refused("llama3-8b", "dgx-h100-ndr400", "{compute: fp32}"), "GPU 'h100-sxm5-80g' has no line for attention in fp32");
  EXPECT_EQ(refused("llama3-8b", "dgx-h100-ndr400", "{compute: fp32, attention: bf16}"), "accepted");
}

}  // namespace
}  // namespace rehearse::tests
