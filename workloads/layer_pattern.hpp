// Which layers are of a kind, as files say it: every n-th, or a list of ones and zeros, also as Megatron writes it: "([0]*3+[1]*58)".
#pragma once

#include <optional>
#include <vector>

#include "config/node.hpp"

namespace rehearse::workloads {

struct LayerPattern {
  int every = 1;
  std::vector<bool> ones;  // by layer; empty: every `every`-th, the first one with it
};

[[nodiscard]] LayerPattern read_layer_pattern(const config::Node& value);

// The layers of a list as first, first + every, ...; nothing where they do not come so.
struct Spaced {
  int first = 0, every = 1;
};
[[nodiscard]] std::optional<Spaced> evenly_spaced(const std::vector<bool>& ones);

// n, when exactly the last of every n layers is a zero; 0 where none is; nothing otherwise.
[[nodiscard]] std::optional<int> full_every(const std::vector<bool>& ones);

}  // namespace rehearse::workloads
