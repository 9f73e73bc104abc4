// A history of faults as a table (docs/fault-format.md): comma-separated values with a header.
#pragma once

#include <string>

#include "sim/faults/fault_source.hpp"

namespace rehearse::sim {

// The same history as a `script`. Throws config::InputError that names line and reason at the first bad row.
[[nodiscard]] config::Node read_trace_file(const std::string& path, const FaultContext& context);

}  // namespace rehearse::sim
