// The problem of DP-MORA in numbers (docs/federated.md, "The problem"): every device chooses one of its cuts and gets a share of each
// shared resource; its latency is alpha + sum over resources of root^2 / share. No model, no radio, no job in here.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace rehearse::federated {

// Uplink, downlink, server; with one band for both directions: band, server.
inline constexpr int max_resources = 3;
using PerResource = std::array<double, max_resources>;  // what is beyond a problem's resources is 0

[[nodiscard]] inline double dot(const PerResource& a, const PerResource& b) { return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]; }

// One cut of one device.
struct Option {
  double alpha_s = 0;  // what the device does by itself: computation, latencies, dedicated links
  PerResource root{};  // sqrt of the seconds on each resource at its whole capacity
  [[nodiscard]] double alone_s() const { return alpha_s + dot(root, root); }  // with everything to itself
};

// The options of all devices, one device after another; those of a device in the order of preference where they cost the same.
struct Problem {
  int resources = max_resources;
  std::vector<Option> options;
  std::vector<std::size_t> first{0};  // [device] its first option; one more at the end

  [[nodiscard]] std::size_t devices() const { return first.size() - 1; }
  [[nodiscard]] std::span<const Option> of(std::size_t device) const {
    return {options.data() + first[device], first[device + 1] - first[device]};
  }
  void add_device(std::span<const Option> its) {
    options.insert(options.end(), its.begin(), its.end());
    first.push_back(options.size());
  }
};

// [device] index among its options.
using Cuts = std::vector<std::uint32_t>;

[[nodiscard]] std::vector<Option> chosen(const Problem& problem, const Cuts& cuts);

}  // namespace rehearse::federated
