// Flows that share links max-min fairly, by progressive filling from nothing: the textbook algorithm, slow and plain, as an oracle for the
// engine's.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace rehearse::tests {

using Load = std::vector<std::pair<std::uint32_t, int>>;  // link (each once), how many times the flow crosses it

// The rate of each flow: all rise together; who crosses a link that is full stays as it is. rates: [link] bytes per second.
// A flow over no link has an infinite rate.
[[nodiscard]] std::vector<double> fair_rates(const std::vector<const Load*>& flows, const std::vector<double>& link_rates);

}  // namespace rehearse::tests
