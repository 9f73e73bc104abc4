// Flavours of torchtitan's models that are ready-made here (torchtitan/models/*/__init__.py).
#pragma once

#include <array>
#include <string_view>

namespace rehearse::sim {

struct TorchtitanFlavour {
  std::string_view name, flavour, model;
};
inline constexpr std::array torchtitan_flavours{
    TorchtitanFlavour{"llama3", "8B", "llama3-8b"},         TorchtitanFlavour{"llama3", "70B", "llama3-70b"},
    TorchtitanFlavour{"llama3", "405B", "llama3-405b"},     TorchtitanFlavour{"deepseek_v3", "671B", "deepseek-v3"},
    TorchtitanFlavour{"qwen3", "30B-A3B", "qwen3-30b-a3b"}, TorchtitanFlavour{"qwen3", "235B-A22B", "qwen3-235b-a22b"},
    TorchtitanFlavour{"kimi_k2", "1T", "kimi-k2"},
};

}  // namespace rehearse::sim
