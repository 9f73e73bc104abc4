// Runs rounds on symbolic data: per member and block the set of members whose contribution is in it. Says what is wrong, or "".
#pragma once

#include <string>

#include "workloads/collective.hpp"

namespace rehearse::tests {

// At most 64 members.
[[nodiscard]] std::string wrong_data(const std::vector<workloads::Round>& rounds, workloads::CollectiveKind kind,
                                     const workloads::GroupShape& group, double bytes, int root);

}  // namespace rehearse::tests
