// Attention under a mask that PyTorch is handed as a tensor (padding): a value of Software::flash beside generations and sdpa.
#pragma once

namespace rehearse::sim {

inline constexpr int masked = -1;

}  // namespace rehearse::sim
