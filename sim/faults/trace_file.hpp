// A history of faults as a table (docs/fault-format.md): comma-separated values with a header.
#pragma once

#include "sim/faults/fault_source.hpp"

namespace rehearse::sim {

// The history in the file that the scalar names, as a `script`. Throws config::InputError that names line and reason at the first bad row.
[[nodiscard]] config::Node read_trace_file(const config::Node& reference, const FaultContext& context);

}  // namespace rehearse::sim
