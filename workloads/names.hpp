// The words by which the files call the choices of a model and a plan.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "config/node.hpp"
#include "workloads/plan.hpp"

namespace rehearse::workloads {

template <class Choice>
class Names {
 public:
  Names(std::initializer_list<std::pair<std::string_view, Choice>> all) : all_(all) {}

  // The choice that a scalar names; refuses other words, listing the known ones.
  [[nodiscard]] Choice read(const config::Node& node) const {
    std::vector<std::string> words;
    for (const auto& [word, choice] : all_) words.emplace_back(word);
    const std::string text = node.as_choice(words);
    for (const auto& [word, choice] : all_) {
      if (word == text) return choice;
    }
    node.fail("unknown choice");
  }

  [[nodiscard]] std::string_view of(Choice wanted) const {
    for (const auto& [word, choice] : all_) {
      if (choice == wanted) return word;
    }
    return "";
  }

 private:
  std::vector<std::pair<std::string_view, Choice>> all_;
};

inline const Names<Activation> activations{
    {"gelu", Activation::gelu}, {"swiglu", Activation::swiglu}, {"geglu", Activation::geglu}, {"relu2", Activation::relu2}};
inline const Names<Positions> positions{{"rope", Positions::rope}, {"learned", Positions::learned}, {"alibi", Positions::alibi}};
inline const Names<Norm> norms{{"layernorm", Norm::layernorm}, {"rmsnorm", Norm::rmsnorm}};
inline const Names<DType> dtypes{
    {"bf16", DType::bf16}, {"fp16", DType::fp16}, {"fp32", DType::fp32}, {"fp8", DType::fp8}, {"fp4", DType::fp4}};
inline const Names<Attention> attentions{{"flash", Attention::flash}, {"unfused", Attention::unfused}};
inline const Names<ContextComm> context_comms{
    {"ring", ContextComm::ring}, {"all-gather", ContextComm::all_gather}, {"all-to-all", ContextComm::all_to_all}};
inline const Names<Dispatcher> dispatchers{
    {"alltoall", Dispatcher::alltoall}, {"allgather", Dispatcher::allgather}, {"hierarchical", Dispatcher::hierarchical}};
inline const Names<Senders> senders{{"alike", Senders::alike}, {"sampled", Senders::sampled}, {"own", Senders::own}};
inline const Names<RecomputeKind> recompute_kinds{
    {"none", RecomputeKind::none}, {"selective", RecomputeKind::selective}, {"full", RecomputeKind::full}};
inline const Names<RecomputeModule> recompute_modules{
    {"core_attn", RecomputeModule::core_attn},     {"layernorm", RecomputeModule::layernorm},
    {"mla_up_proj", RecomputeModule::mla_up_proj}, {"mlp", RecomputeModule::mlp},
    {"moe_act", RecomputeModule::moe_act},         {"shared_experts", RecomputeModule::shared_experts}};

}  // namespace rehearse::workloads
