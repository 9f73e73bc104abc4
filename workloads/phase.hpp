// What an operation is for, and with that where a rank's time goes: one table, from which results, files and GPUs' contention are named.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace rehearse::workloads {

// An operation's time is booked as its phase when nothing hides it. Each instant of a rank's step belongs to exactly one, so that they add
// up to the step. No operation is for allocator (memory given back and asked for again, sim/memory/allocator_time.hpp),
// bubble (nothing to do yet) or waiting (for a late member of a collective).
enum class Phase : std::uint8_t { compute, recompute, tp, cp, ep, pp, dp, offload, optimizer, allocator, bubble, waiting, count };
inline constexpr std::size_t phase_count = static_cast<std::size_t>(Phase::count);

struct PhaseNames {
  std::string_view name;             // "exposed tp"
  std::string_view key;              // in JSON and CSV: "exposed_tp"
  std::string_view contention = {};  // of communication that computation runs beside: its key in a GPU's file
};
inline constexpr std::array<PhaseNames, phase_count> phase_names{{{"compute", "compute"},
                                                                  {"recompute", "recompute"},
                                                                  {"exposed tp", "exposed_tp", "tp"},
                                                                  {"exposed cp", "exposed_cp", "cp"},
                                                                  {"exposed ep", "exposed_ep", "ep"},
                                                                  {"exposed pp", "exposed_pp", "pp"},
                                                                  {"exposed dp", "exposed_dp", "dp"},
                                                                  {"exposed offload", "exposed_offload", "offload"},
                                                                  {"optimizer", "optimizer"},
                                                                  {"allocator", "allocator"},
                                                                  {"bubble", "bubble"},
                                                                  {"waiting", "waiting"}}};

[[nodiscard]] constexpr const PhaseNames& names_of(Phase phase) { return phase_names[static_cast<std::size_t>(phase)]; }
[[nodiscard]] constexpr std::string_view name_of(Phase phase) { return names_of(phase).name; }
[[nodiscard]] constexpr std::string_view key_of(Phase phase) { return names_of(phase).key; }

// Communication that computation may run beside: phases with a key in a GPU's file.
inline constexpr auto contended = [](const PhaseNames& names) { return !names.contention.empty(); };
inline constexpr auto contended_phases = [] {
  std::array<Phase, std::ranges::count_if(phase_names, contended)> phases{};
  for (std::size_t i = 0, next = 0; i < phase_count; ++i) {
    if (contended(phase_names[i])) phases[next++] = static_cast<Phase>(i);
  }
  return phases;
}();

}  // namespace rehearse::workloads
