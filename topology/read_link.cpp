#include "topology/read_link.hpp"

namespace rehearse::topology {
namespace {

constexpr double least_efficiency = 1e-3, least_bandwidth = 1e3;  // below these a step takes years

double read_efficiency(const config::Node& node) {
  const double efficiency = node.as_number(0, 1);
  if (efficiency <= 0) node.fail("efficiency must be above 0 and at most 1");
  if (efficiency < least_efficiency) node.fail("an efficiency below 0.001");
  return efficiency;
}

double read_latency(const config::Node& node) {
  const double latency = node.as_quantity(config::Dimension::time);
  if (latency > 1) node.fail("a latency above 1 s", "latencies of links are microseconds: write 5 us");
  return latency;
}

}  // namespace

double read_bandwidth(const config::Node& node) {
  const double rate = node.as_quantity(config::Dimension::bandwidth);
  if (rate <= 0) node.fail("a bandwidth must be above 0");
  if (rate < least_bandwidth) node.fail("a bandwidth below 1 kB/s", "write 400 Gbps or 50 GB/s");
  return rate;
}

LinkSpec read_link(const config::Node& node, const std::vector<std::string>& more) {
  std::vector<std::string> known{"bandwidth", "efficiency", "latency"};
  known.insert(known.begin(), more.begin(), more.end());
  node.allow_keys(known);
  LinkSpec link;
  link.bandwidth_bytes_per_s = read_bandwidth(node.at("bandwidth"));
  if (const auto efficiency = node.find("efficiency")) link.efficiency = read_efficiency(*efficiency);
  link.latency_s = read_latency(node.at("latency"));
  return link;
}

LinkSpec read_cable(const config::Node& node, const LinkSpec& fallback, const std::vector<std::string>& more) {
  LinkSpec cable = fallback;
  if (node.is_scalar()) {
    cable.bandwidth_bytes_per_s = read_bandwidth(node);
    return cable;
  }
  std::vector<std::string> known{"bandwidth", "efficiency"};
  known.insert(known.begin(), more.begin(), more.end());
  node.allow_keys(known);
  if (const auto bandwidth = node.find("bandwidth")) cable.bandwidth_bytes_per_s = read_bandwidth(*bandwidth);
  if (const auto efficiency = node.find("efficiency")) cable.efficiency = read_efficiency(*efficiency);
  return cable;
}

LinkSpec read_service(const config::Node& node, const LinkSpec& port, const std::vector<std::string>& more) {
  std::vector<std::string> known{"efficiency", "latency"};
  known.insert(known.begin(), more.begin(), more.end());
  node.allow_keys(known);
  LinkSpec service = port;
  if (const auto efficiency = node.find("efficiency")) service.efficiency = read_efficiency(*efficiency);
  if (const auto latency = node.find("latency")) service.latency_s = read_latency(*latency);
  return service;
}

int read_count(const config::Node& node, int low, int high) { return static_cast<int>(node.as_int(low, high)); }

int read_count(const config::Node& node, std::string_view key, int low, int high, int fallback) {
  const auto value = node.find(key);
  return value ? read_count(*value, low, high) : fallback;
}

}  // namespace rehearse::topology
