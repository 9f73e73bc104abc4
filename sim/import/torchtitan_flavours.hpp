// Flavours of torchtitan's models that are ready-made here (torchtitan/models/*/__init__.py).
#pragma once

#include <array>
#include <string_view>

namespace rehearse::sim {

struct TorchtitanFlavour {
  std::string_view name, flavour, model;
  bool experts = false;
};
inline constexpr std::array torchtitan_flavours{
    TorchtitanFlavour{"llama3", "8B", "llama3-8b"},
    TorchtitanFlavour{"llama3", "70B", "llama3-70b"},
    TorchtitanFlavour{"llama3", "405B", "llama3-405b"},
    TorchtitanFlavour{"deepseek_v3", "671B", "deepseek-v3", true},
    TorchtitanFlavour{"deepseek_v3", "16B", "deepseek-v2-lite", true},
    TorchtitanFlavour{"qwen3", "0.6B", "qwen3-0.6b"},
    TorchtitanFlavour{"qwen3", "1.7B", "qwen3-1.7b"},
    TorchtitanFlavour{"qwen3", "4B", "qwen3-4b"},
    TorchtitanFlavour{"qwen3", "8B", "qwen3-8b"},
    TorchtitanFlavour{"qwen3", "14B", "qwen3-14b"},
    TorchtitanFlavour{"qwen3", "32B", "qwen3-32b"},
    TorchtitanFlavour{"qwen3", "30B-A3B", "qwen3-30b-a3b", true},
    TorchtitanFlavour{"qwen3", "235B-A22B", "qwen3-235b-a22b", true},
    TorchtitanFlavour{"kimi_k2", "1T", "kimi-k2", true},
};

}  // namespace rehearse::sim
