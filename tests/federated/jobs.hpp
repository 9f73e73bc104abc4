// Jobs for the tests: written out, or drawn with a seed.
#pragma once

#include <fmt/format.h>

#include "config/random.hpp"
#include "sim/federated/job.hpp"

namespace rehearse::federated {

inline Job job_from(const std::string& text) { return read_job("test", config::Node::load_text(text, "job.yaml"), {}); }

struct RandomJob {
  int most_devices = 6;
  std::string radio = "{}", server = "", more = "";
};

// A few devices of random speeds, rates, samples and latencies that train one of the ready-made CNNs.
inline std::string random_job_text(std::uint64_t seed, const RandomJob& like = {}) {
  config::Random random(seed);
  const auto between = [&](double low, double high) { return low + (high - low) * random.uniform(); };
  const int count = 2 + static_cast<int>(random.next() % static_cast<std::uint64_t>(like.most_devices - 1));
  std::string devices;
  for (int n = 0; n < count; ++n) {
    devices += fmt::format(
        "    - {{name: d{}, speed: {:.3f} GFLOP/s, samples: {}, uplink: {:.3f} Mbps, downlink: {:.3f} Mbps, latency: {:.3f} ms, "
        "leakage: {:.3f}}}\n",
        n, between(4, 200), 20 + random.next() % 180, between(20, 300), between(50, 400), between(0, 10), between(0.5, 1));
  }
  const std::string model = random.next() % 2 == 0 ? "resnet18-cifar" : "vgg16-cifar";
  return fmt::format("model: {}\nfederated:\n  devices:\n{}  server: {{speed: {:.1f} GFLOP/s{}}}\n  radio: {}\n  batch: {}\n{}", model,
                     devices, between(300, 8000), like.server, like.radio, 10 + random.next() % 40, like.more);
}

}  // namespace rehearse::federated
