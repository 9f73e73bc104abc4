#include "sim/wholejob/account.hpp"

namespace rehearse::sim {

std::string_view key_of(Cause cause) {
  constexpr std::array<std::string_view, cause_count> keys{"trained",   "degraded", "saving",  "rollback", "init",
                                                           "detection", "repair",   "restart", "load",     "unfinished"};
  return keys[static_cast<std::size_t>(cause)];
}

}  // namespace rehearse::sim
