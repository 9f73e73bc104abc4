// What a trace says of one operation, beside what is predicted of it before and after a fit.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace rehearse::sim {

// How the trace's kernels find their place in the job, from the best to the last.
enum class ComparedBy : std::uint8_t {
  name,      // kernels are named as the job's operations (traces of `simulate`)
  shape,     // operators of PyTorch whose shapes the trace tells
  position,  // products, of which a step has as many as the job's
  kind       // the sum of a class of kernels
};
inline constexpr int ways_to_compare = 4;
[[nodiscard]] std::string_view name_of(ComparedBy by);  // of several: "operations", "operators by their shapes", ...

struct ComparedTime {
  std::string name;
  ComparedBy by = ComparedBy::name;
  double measured_s = 0, before_s = 0, after_s = 0;  // on the GPU
};

}  // namespace rehearse::sim
