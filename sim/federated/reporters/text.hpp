// How the reporters of split-federated jobs write things.
#pragma once

#include <string>

#include "sim/federated/sections.hpp"

namespace rehearse::federated {

[[nodiscard]] std::string seconds_text(double seconds);  // "72.7 s"
// The round that a section shows: simulated where it is, else by formula.
[[nodiscard]] const RoundResult& shown_round(const RoundSection& section);
// "parameters (proxy: ...)".
[[nodiscard]] std::string leakage_text(const Job& job);
// Names of the shared media and the server, with their use: uplink, downlink, server, or band, server.
struct NamedUse {
  std::string name;
  ResourceUse use;
  double price = 0, seconds_per_percent = 0;
  bool reserved = true;
};
[[nodiscard]] std::vector<NamedUse> uses_of(const RoundSection& section);

}  // namespace rehearse::federated
