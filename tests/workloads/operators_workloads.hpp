// Workloads and sums over programs for the operator tests.
#pragma once

#include <string>
#include <vector>

#include "workloads/operators.hpp"

namespace rehearse::workloads::testing {

// A GPT block as in Narayanan et al. 2021: MHA, gelu, biases, LayerNorm, learned positions, tied embeddings, unfused attention.
Workload gpt(int layers, int hidden, int heads, int vocab, int sequence, int micro);
// A LLaMA block: GQA, swiglu, RMSNorm, rotary embedding, flash attention.
Workload llama(int layers, int hidden, int heads, int kv_heads, int ffn, int vocab, int sequence, int micro);

double flops(const std::vector<Item>& items, Pass pass);
double flops(const std::vector<Item>& items);  // a ring counts one step
double flops_with_rings(const std::vector<Item>& items, int cp);
double bytes(const std::vector<Item>& items);
std::vector<Communication> communications(const std::vector<Item>& items);
std::vector<Operator> operators(const std::vector<Item>& items);
Operator find(const std::vector<Item>& items, const std::string& name);
// "attention all-gather", "qkv", ... in order; memory-bound operators left out.
std::vector<std::string> skeleton(const std::vector<Item>& items);

// Llama 3 8B on this plan, two sequences of 8,192 tokens a micro-batch.
Workload parallel(int tp, bool sp, int cp = 1);

}  // namespace rehearse::workloads::testing
