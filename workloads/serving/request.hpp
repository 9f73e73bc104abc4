// What clients ask of a serving deployment. Plain data.
#pragma once

#include <cstdint>
#include <vector>

namespace rehearse::workloads {

// A request brings a prompt and takes an answer, in tokens; both at least 1.
struct Lengths {
  int input = 1, output = 1;
};

struct Request {
  double arrival_s = 0;
  Lengths tokens;
};

}  // namespace rehearse::workloads
