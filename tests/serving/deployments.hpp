// Deployments for tests: constant prices, so that theory says what must come out; small jobs by text.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "sim/serving/simulation.hpp"

namespace rehearse::tests {

// A pass with prompts takes so long per prompt token; a decode pass is a constant.
class ConstantPrice final : public sim::PassPrice {
 public:
  ConstantPrice(double prompt_token_s, double decode_pass_s) : prompt_token_s_(prompt_token_s), decode_pass_s_(decode_pass_s) {}
  [[nodiscard]] double seconds(const sim::PassShape& shape) const override {
    return prompt_token_s_ * shape.prompt_tokens + (shape.decodes > 0 ? decode_pass_s_ : 0);
  }
  [[nodiscard]] sim::DecodeLine decode(int) const override {
    sim::DecodeLine line;
    line.base_s = decode_pass_s_;
    return line;
  }

 private:
  double prompt_token_s_, decode_pass_s_;
};

// Caches of one byte per token go over one link for all, a thousand a second unless said.
class OneLink final : public sim::TransferPlan {
 public:
  struct Habits {
    bool reserves_first = false, prefill_answers_first = false, by_chunks = false;
    double bytes_per_s = 1000, before_s = 0, after_s = 0;
    int layers = 1;  // that leave one by one; needs by_chunks
  };
  explicit OneLink(const Habits& habits) : habits_(habits) {}
  void build(sim::Machine& machine) override { link_ = machine.add_link(habits_.bytes_per_s); }
  [[nodiscard]] std::vector<sim::TransferLink> links() const override { return {{"", "here", "there", habits_.bytes_per_s}}; }
  [[nodiscard]] std::int64_t early(std::size_t, std::int64_t computed) const override { return habits_.by_chunks ? computed : 0; }
  [[nodiscard]] int layers() const override { return habits_.layers; }
  [[nodiscard]] sim::HandOver hand_over(std::size_t, std::size_t, std::size_t, const sim::CacheFront& sent,
                                        const sim::CacheFront& ready) const override {
    const auto bytes_of = [&](const sim::CacheFront& front) {
      const auto ahead = front.layers > 0 ? static_cast<double>(front.ahead - front.tokens) : 0;
      return static_cast<double>(front.tokens) + ahead * front.layers / habits_.layers;
    };
    const double bytes = bytes_of(ready) - bytes_of(sent);
    return {habits_.before_s, {{{link_}, bytes}}, habits_.after_s, bytes};
  }
  [[nodiscard]] std::vector<sim::HandOver::Flow> weights(std::size_t, std::size_t, double bytes) const override {
    return {{{link_}, bytes}};
  }
  [[nodiscard]] std::optional<std::pair<sim::LinkIndex, double>> link(const sim::ServiceLink&) const override {
    return std::pair(link_, habits_.bytes_per_s);
  }
  void cut(const std::vector<sim::ServiceLink>&) override {}  // there is no other way
  [[nodiscard]] bool reserves_first() const override { return habits_.reserves_first; }
  [[nodiscard]] bool prefill_answers_first() const override { return habits_.prefill_answers_first; }

 private:
  Habits habits_;
  sim::LinkIndex link_ = 0;
};

// A server that computes one prompt at a time, and nothing else.
[[nodiscard]] inline sim::PoolSetup prompt_servers(int instances, double token_s) {
  sim::InstanceRules rules;
  rules.role = sim::Role::prefill;
  rules.chunked_prefill = false;
  rules.sequences = 1;
  rules.tokens = 1;
  rules.pages = std::int64_t{1} << 40U;
  rules.page = 16;
  return {"queue", rules, std::make_shared<ConstantPrice>(token_s, 0), instances};
}

inline constexpr const char* small_job =
    "model: llama3-8b\n"
    "cluster: dgx-h100-ndr400\n"
    "software: vllm\n"
    "serving:\n"
    "  pools:\n"
    "    all: {role: both, instances: 1, parallel: {tp: 1}, precision: {compute: bf16, weights: bf16, kv: bf16}}\n"
    "  load: {arrivals: {poisson: 2 /s}, input: 1000, output: 100, requests: 200}\n";

}  // namespace rehearse::tests
