// Work in a forked child process that answers with numbers: SimGrid allows one simulation per process.
#pragma once

#include <functional>
#include <vector>

namespace rehearse::sim {

// Throws std::runtime_error with the child's message when `work` throws there, or when the child dies.
[[nodiscard]] std::vector<double> run_in_child(const std::function<std::vector<double>()>& work);

}  // namespace rehearse::sim
