// The arguments of Megatron-LM, from wherever they come: a script, a YAML file, or the settings of a program on top of it.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "config/node.hpp"
#include "sim/import/draft.hpp"
#include "workloads/plan.hpp"

namespace rehearse::sim {

// Arguments by name without the leading dashes; a value is a scalar ("true" of a flag) or a list.
class MegatronArguments {
 public:
  // The last of several counts. `false` and null are as if left out.
  void add(const std::string& name, const config::Node& value);
  void rename(std::string_view name, const std::string& now);  // where it is given, and `now` is not

  // Values may come from variables that a script does not set: one that is empty is refused with that hint.
  void expect_variables() { variables_ = true; }

  // Each of these marks the argument as used. A flag is refused when its value is neither true nor false.
  [[nodiscard]] std::optional<config::Node> take(std::string_view name);
  [[nodiscard]] bool flag(std::string_view name);
  [[nodiscard]] std::optional<bool> truth(std::string_view name);  // of settings whose `false` says something
  [[nodiscard]] std::string word(std::string_view name, std::string_view otherwise);
  [[nodiscard]] std::string choice(std::string_view name, const std::vector<std::string>& choices);  // the first where it is not given
  [[nodiscard]] std::int64_t whole(std::string_view name, std::int64_t otherwise, std::int64_t low = 1, std::int64_t high = 1'000'000'000);
  [[nodiscard]] bool has(std::string_view name) const;

  // What nobody has taken, in order.
  [[nodiscard]] std::vector<std::pair<std::string, config::Node>> left() const;
  [[nodiscard]] const std::vector<std::string>& given_twice() const { return twice_; }

 private:
  struct Argument {
    std::string name;
    config::Node value;
    bool taken = false;
  };
  [[nodiscard]] Argument* find(std::string_view name);
  std::vector<Argument> all_;
  std::vector<std::string> twice_;
  bool variables_ = false;
};

// Fills a job: model, plan, batch, precision and the rest. `world` is the number of GPUs where the file says it, else 0.
void read_megatron_arguments(MegatronArguments& arguments, std::int64_t world, Draft& draft);

// What arguments of its predecessors and of Megatron-DeepSpeed mean, as arguments of today and keys of the job.
void read_older_megatron(MegatronArguments& arguments, Draft& draft);
// Its halves, which throw InputError for what cannot be simulated.
void read_megatron_model(MegatronArguments& arguments, Draft& draft);
void read_megatron_plan(MegatronArguments& arguments, std::int64_t world, Draft& draft);
void read_megatron_precision(MegatronArguments& arguments, Draft& draft);  // of the plan

// What experts' rows are filled up to with --moe-router-padding-for-quantization (get_fp8_align_size in megatron/core/fp8_utils.py). None
// in fp4, where get_fp4_align_size said 32 at first and says 128 now.
[[nodiscard]] std::optional<std::int64_t> megatron_multiple(workloads::DType compute, workloads::Scaling recipe);

// What is neither used by the functions above nor in one of these lists is named as left out.
[[nodiscard]] bool megatron_has_no_effect(std::string_view name);
[[nodiscard]] std::string_view megatron_refusal(std::string_view name);  // why; "" where it is not refused

}  // namespace rehearse::sim
