#include "sim/import/megatron_arguments.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace rehearse::sim {
namespace {

using config::Node;

bool is_off(const Node& value) {
  if (value.is_null()) return true;
  if (!value.is_scalar()) return false;
  const std::string text = value.as_string();
  return text == "false" || text == "False" || text == "None" || text == "null";
}

}  // namespace

void MegatronArguments::add(const std::string& name, const Node& value) {
  if (Argument* before = find(name)) {
    twice_.push_back(name);
    before->value = value;
    return;
  }
  all_.push_back({name, value});
}

void MegatronArguments::rename(std::string_view name, const std::string& now) {
  Argument* argument = find(name);
  if (argument != nullptr && find(now) == nullptr) argument->name = now;
}

MegatronArguments::Argument* MegatronArguments::find(std::string_view name) {
  const auto found = std::ranges::find(all_, name, &Argument::name);
  return found == all_.end() ? nullptr : &*found;
}

bool MegatronArguments::has(std::string_view name) const {
  const auto found = std::ranges::find(all_, name, &Argument::name);
  return found != all_.end() && !is_off(found->value);
}

std::optional<Node> MegatronArguments::take(std::string_view name) {
  Argument* found = find(name);
  if (found == nullptr) return std::nullopt;
  found->taken = true;
  if (variables_ && found->value.is_scalar() && found->value.as_string().empty())
    found->value.fail(fmt::format("--{} has no value", name), "--variable NAME=VALUE gives one to a variable that nothing here sets");
  return is_off(found->value) ? std::nullopt : std::optional(found->value);
}

bool MegatronArguments::flag(std::string_view name) {
  Argument* found = find(name);
  if (found == nullptr) return false;
  found->taken = true;
  if (is_off(found->value)) return false;
  const Node* value = &found->value;
  const std::string text = value->is_scalar() ? value->as_string() : "";
  if (value->is_scalar() && (text == "true" || text == "True" || text.empty())) return true;
  value->fail(fmt::format("{} is a switch and takes no value", name));
}

std::optional<bool> MegatronArguments::truth(std::string_view name) {
  Argument* found = find(name);
  if (found == nullptr || found->value.is_null()) return std::nullopt;
  found->taken = true;
  return !is_off(found->value) && flag(name);
}

std::string MegatronArguments::word(std::string_view name, std::string_view otherwise) {
  const auto value = take(name);
  return value ? value->as_string() : std::string(otherwise);
}

std::string MegatronArguments::choice(std::string_view name, const std::vector<std::string>& choices) {
  const auto value = take(name);
  return value ? value->as_choice(choices) : choices.front();
}

std::int64_t MegatronArguments::whole(std::string_view name, std::int64_t otherwise, std::int64_t low, std::int64_t high) {
  const auto value = take(name);
  return value ? value->as_int(low, high) : otherwise;
}

std::vector<std::pair<std::string, Node>> MegatronArguments::left() const {
  std::vector<std::pair<std::string, Node>> out;
  for (const Argument& argument : all_) {
    if (!argument.taken) out.emplace_back(argument.name, argument.value);
  }
  return out;
}

void read_megatron_arguments(MegatronArguments& arguments, std::int64_t world, Draft& draft) {
  for (const auto& [name, value] : arguments.left()) {
    const std::string_view why = megatron_refusal(name);
    const bool none = value.is_scalar() && value.as_string() == "0";
    if (!why.empty() && !is_off(value) && !none) value.fail(fmt::format("{}: {}", name, why));
  }
  read_older_megatron(arguments, draft);
  read_megatron_model(arguments, draft);
  read_megatron_plan(arguments, world, draft);
  for (const std::string& name : arguments.given_twice()) draft.infer(fmt::format("{} is given more than once: the last counts", name));
  for (const auto& [name, value] : arguments.left()) {
    const bool experts = draft.document().find_path("model.moe").has_value();
    const bool none = value.is_scalar() && value.as_string() == "0";
    if (is_off(value) || none || megatron_has_no_effect(name) || (name.starts_with("moe-") && !experts)) {
      draft.ignore(name);
    } else {
      draft.puzzle(name);
    }
  }
}

}  // namespace rehearse::sim
