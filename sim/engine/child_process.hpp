// Work in forked child processes that answer with numbers: SimGrid allows one simulation per process. The caller must be the only thread of
// its process: a child has only the thread that forked it, and would wait for ever for a lock that another thread held.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

namespace rehearse::sim {

using Work = std::function<std::vector<double>()>;

// Throws std::runtime_error with the child's message when `work` throws there, or when the child dies.
[[nodiscard]] std::vector<double> run_in_child(const Work& work);

// Works 0, 1, ..., count - 1, each in a child of its own, at most `processes` (>= 1) at a time. `work_of(i)` is called here, just before
// the child of i starts; `done(i, answer)` as children end, in no order. Throws as above; the other children are then killed.
void run_in_children(std::size_t count, int processes, const std::function<Work(std::size_t)>& work_of,
                     const std::function<void(std::size_t, std::vector<double>)>& done);

}  // namespace rehearse::sim
