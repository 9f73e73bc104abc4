// 64-bit FNV-1a (Fowler, Noll, Vo; draft-eastlake-fnv) of a text: what results and parts of work are recognised by.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace rehearse::config {

// 16 hex digits.
[[nodiscard]] inline std::string fnv1a(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  return fmt::format("{:016x}", hash);
}

}  // namespace rehearse::config
