// What goes wrong while a deployment serves (docs/serving.md, "Failures").
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace rehearse::sim {

// Several may strike one instance or port at a time: it works again when the last of them is over, and is as slow as the slowest says.
struct ServiceFault {
  enum class Kind { fails, slows, port } kind = Kind::fails;
  std::string text = {};                                // as the job calls it
  std::vector<std::size_t> instances = {};              // fails, slows: among all, pool after pool
  std::vector<std::pair<std::size_t, int>> ports = {};  // port: of a GPU of a part
  double times = 1;                                     // slows, port: so many times as long
  double from_s = 0, for_s = 0;                         // infinite: for good
};

}  // namespace rehearse::sim
