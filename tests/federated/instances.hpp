// The instances of the reference file as problems: the abstract ones as they are written, those of models by way of a job.
#pragma once

#include <fmt/format.h>

#include <cmath>

#include "sim/federated/job.hpp"
#include "tests/federated/reference.hpp"

namespace rehearse::federated::reference {

inline Instance abstract_instance(const config::Node& node) {
  Instance out{.name = node.at("name").as_string(), .node = node, .expected = node.at("expected"), .problem = {}, .names = {}};
  out.problem.resources = static_cast<int>(node.at("resources").as_int(1, max_resources));
  for (const config::Node& device : node.at("options").items()) {
    std::vector<Option> options;
    out.names.emplace_back();
    for (const config::Node& entry : device.items()) {
      const std::vector<config::Node> parts = entry.items();
      Option option{.alpha_s = number(parts[1])};
      const std::vector<double> seconds = numbers(parts[2]);
      for (std::size_t i = 0; i < seconds.size(); ++i) option.root[i] = std::sqrt(seconds[i]);
      options.push_back(option);
      out.names.back().push_back(parts[0].as_string());
    }
    out.problem.add_device(options);
  }
  return out;
}

// The job that the instance describes.
inline std::string job_text(const config::Node& node) {
  std::string devices;
  int number = 0;
  for (const config::Node& device : node.at("devices").items()) {
    const auto value = [&](const char* key) { return device.at(key).as_string(); };
    devices += fmt::format(
        "    - {{name: d{}, speed: {} GFLOP/s, samples: {}, uplink: {} Mbps, downlink: {} Mbps, latency: {} ms, leakage: {}}}\n", ++number,
        value("gflops"), value("samples"), value("uplink_mbps"), value("downlink_mbps"), value("latency_ms"), value("leakage"));
  }
  return fmt::format("model: {}\nfederated:\n  devices:\n{}  server: {{speed: {} GFLOP/s}}\n  batch: {}\n  epochs: {}\n",
                     node.at("model").as_string(), devices, node.at("server_gflops").as_string(), node.at("batch").as_string(),
                     node.at("epochs").as_string());
}

inline Instance model_instance(const config::Node& node) {
  const std::string name = node.at("name").as_string();
  const Job job = read_job(name, config::Node::load_text(job_text(node), name), {});
  Instance out{.name = name, .node = node, .expected = node.at("expected"), .problem = problem_of(job), .names = {}};
  for (const std::vector<std::uint16_t>& cuts : job.available) {
    out.names.emplace_back();
    for (const std::uint16_t cut : cuts) out.names.back().push_back(job.cuts[cut].name);
  }
  return out;
}

inline std::vector<Instance> instances() {
  std::vector<Instance> all;
  for (const config::Node& node : file().at("instances").items()) {
    all.push_back(node.find("options") ? abstract_instance(node) : model_instance(node));
  }
  return all;
}

}  // namespace rehearse::federated::reference
