// What each choice of a job is worth: the round with one key changed at a time.
#pragma once

#include <functional>

#include "sim/federated/sections.hpp"

namespace rehearse::federated {

// Every value of every choice that the job does not have (keys marked as features), and cuts, shares and limits in their usual other forms.
[[nodiscard]] Effects effects_of(const std::string& name, const config::Node& document, const std::optional<std::uint64_t>& seed,
                                 const std::function<void(double)>& progress);

}  // namespace rehearse::federated
