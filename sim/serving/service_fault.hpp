// What goes wrong while a deployment serves (docs/serving.md, "Failures").
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace rehearse::sim {

// One direction of a link: of a part's fabric; where `part` is the number of parts, of the network between two parts.
struct ServiceLink {
  std::size_t part = 0;
  std::uint32_t link = 0;
  friend auto operator<=>(const ServiceLink&, const ServiceLink&) = default;  // NOLINT(modernize-use-nullptr): the 0 it compares with
};
[[nodiscard]] inline ServiceLink between_parts(std::size_t parts, std::size_t from, std::size_t to) {
  return {parts, static_cast<std::uint32_t>(from * parts + to)};
}

// Several may strike one instance or link at a time: it works again when the last of them is over, and is as slow as the slowest says.
struct ServiceFault {
  // link: it is slow, or moves nothing; cut: it is gone, and what can goes another way.
  enum class Kind { fails, slows, link, cut } kind = Kind::fails;
  std::string text = {};                    // as the job calls it
  std::vector<std::size_t> instances = {};  // fails, slows: among all, pool after pool
  std::vector<ServiceLink> links = {};      // link, cut
  double times = 1;                         // slows, link: so many times as long
  double from_s = 0, for_s = 0;             // infinite: for good
  double every_s = 0;                       // comes again so long after it began; 0: it does not
};

}  // namespace rehearse::sim
