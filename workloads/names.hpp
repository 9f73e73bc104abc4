// The words by which the files call the choices of a model and a plan.
#pragma once

#include "config/names.hpp"
#include "workloads/plan.hpp"

namespace rehearse::workloads {

using config::Names;

inline const Names<Activation> activations{
    {"gelu", Activation::gelu}, {"swiglu", Activation::swiglu}, {"geglu", Activation::geglu}, {"relu2", Activation::relu2}};
inline const Names<Positions> positions{
    {"rope", Positions::rope}, {"learned", Positions::learned}, {"alibi", Positions::alibi}, {"none", Positions::none}};
inline const Names<Norm> norms{{"layernorm", Norm::layernorm}, {"rmsnorm", Norm::rmsnorm}};
inline const Names<ParallelResidual> parallel_residuals{
    {"none", ParallelResidual::none}, {"one_norm", ParallelResidual::one_norm}, {"two_norms", ParallelResidual::two_norms}};
inline const Names<AttentionBiases> attention_biases{
    {"none", AttentionBiases::none}, {"qkv", AttentionBiases::qkv}, {"all", AttentionBiases::all}};
inline const Names<DType> dtypes{
    {"bf16", DType::bf16}, {"fp16", DType::fp16}, {"fp32", DType::fp32}, {"fp8", DType::fp8}, {"fp4", DType::fp4}};
inline const Names<OptimizerKind> optimizer_kinds{{"adam", OptimizerKind::adam}, {"muon", OptimizerKind::muon}};
inline const Names<GatheredAgain> gathered_again{
    {"none", GatheredAgain::none}, {"adapters", GatheredAgain::adapters}, {"all", GatheredAgain::all}};
inline const Names<Scaling> scalings{{"delayed", Scaling::delayed},     {"tensorwise", Scaling::tensorwise},
                                     {"rowwise", Scaling::rowwise},     {"rowwise_with_gw_hp", Scaling::rowwise_with_gw_hp},
                                     {"blockwise", Scaling::blockwise}, {"mxfp8", Scaling::mxfp8},
                                     {"nvfp4", Scaling::nvfp4}};
inline const Names<Scaling> fp8_scalings = scalings.without(Scaling::nvfp4);
inline const Names<GraphScope> graph_scopes{{"attn", GraphScope::attn},
                                            {"mlp", GraphScope::mlp},
                                            {"mamba", GraphScope::mamba},
                                            {"moe_router", GraphScope::moe_router},
                                            {"moe_preprocess", GraphScope::moe_preprocess}};
inline const Names<Attention> attentions{{"flash", Attention::flash}, {"unfused", Attention::unfused}};
inline const Names<ContextComm> context_comms{
    {"ring", ContextComm::ring}, {"all-gather", ContextComm::all_gather}, {"all-to-all", ContextComm::all_to_all}};
inline const Names<Dispatcher> dispatchers{
    {"alltoall", Dispatcher::alltoall}, {"allgather", Dispatcher::allgather}, {"hierarchical", Dispatcher::hierarchical}};
inline const Names<Senders> senders{{"alike", Senders::alike}, {"sampled", Senders::sampled}, {"own", Senders::own}};
inline const Names<RecomputeKind> recompute_kinds{
    {"none", RecomputeKind::none}, {"selective", RecomputeKind::selective}, {"full", RecomputeKind::full}};
inline const Names<RecomputeModule> recompute_modules{{"core_attn", RecomputeModule::core_attn},
                                                      {"layernorm", RecomputeModule::layernorm},
                                                      {"mla_up_proj", RecomputeModule::mla_up_proj},
                                                      {"mlp", RecomputeModule::mlp},
                                                      {"mlp_act", RecomputeModule::mlp_act},
                                                      {"moe_act", RecomputeModule::moe_act},
                                                      {"shared_experts", RecomputeModule::shared_experts}};
inline const Names<LayerOutput> layer_outputs{{"linear_qkv", LayerOutput::linear_qkv},   {"core_attention", LayerOutput::core_attention},
                                              {"linear_proj", LayerOutput::linear_proj}, {"linear_fc1", LayerOutput::linear_fc1},
                                              {"linear_fc2", LayerOutput::linear_fc2},   {"expert_fc2", LayerOutput::expert_fc2}};
// Megatron-Bridge's words, then those of HuggingFace's PEFT and torchtune for the same.
inline const Names<LoraTarget> lora_targets{{"linear_qkv", LoraTarget::linear_qkv},
                                            {"linear_q", LoraTarget::linear_q},
                                            {"linear_k", LoraTarget::linear_k},
                                            {"linear_v", LoraTarget::linear_v},
                                            {"linear_proj", LoraTarget::linear_proj},
                                            {"linear_fc1", LoraTarget::linear_fc1},
                                            {"linear_fc1_gate", LoraTarget::linear_fc1_gate},
                                            {"linear_fc1_up", LoraTarget::linear_fc1_up},
                                            {"linear_fc2", LoraTarget::linear_fc2},
                                            {"q_proj", LoraTarget::linear_q},
                                            {"k_proj", LoraTarget::linear_k},
                                            {"v_proj", LoraTarget::linear_v},
                                            {"o_proj", LoraTarget::linear_proj},
                                            {"gate_proj", LoraTarget::linear_fc1_gate},
                                            {"up_proj", LoraTarget::linear_fc1_up},
                                            {"down_proj", LoraTarget::linear_fc2}};

}  // namespace rehearse::workloads
