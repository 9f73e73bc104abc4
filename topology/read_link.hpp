// Pieces of a cluster file that several readers share: links, counts, and rates that must not be zero.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "config/form.hpp"
#include "topology/cluster.hpp"
#include "topology/typical_link.hpp"

namespace rehearse::topology {

// Above 0 and finite; in bytes per second.
[[nodiscard]] double read_bandwidth(const config::Node& node);

using More = std::vector<config::Parameter>;

// A latency of a link: a time, at most 1 s.
[[nodiscard]] double read_latency(const config::Node& node);

// {bandwidth, efficiency, latency} and the keys of `more`, which the caller reads. Only bandwidth is required.
[[nodiscard]] LinkSpec read_link(const config::Node& node, const TypicalLink& otherwise, const More& more);
[[nodiscard]] config::Shape link_shape(const std::string& otherwise_efficiency, const std::string& otherwise_latency, const More& more);
[[nodiscard]] config::Shape link_shape(const TypicalLink& otherwise, const More& more);

// A cable between switches: "400 Gbps" or {bandwidth, efficiency}; what is absent is taken from `fallback`. Its latency is part of the
// NIC's.
[[nodiscard]] LinkSpec read_cable(const config::Node& node, const LinkSpec& fallback, const More& more = {});
[[nodiscard]] config::Shape cable_shape(const More& more = {});

// `in_network`: switches that reduce and multicast what passes their ports, {kind, efficiency, latency}; defaults are those of the port.
struct InNetwork {
  std::string kind, product, means;  // "nvls", "NVLink SHARP.", what the key says
};
[[nodiscard]] config::Parameter in_network_key(const InNetwork& what);
[[nodiscard]] LinkSpec read_in_network(const config::Node& node, const LinkSpec& port, const InNetwork& what);

// `ll`, `ll128`: NCCL's other protocols over the link, each {call, latency, efficiency}, `typical` or `none`. What such a mapping leaves
// out is the typical one's; where the key is absent the link has them if `by_default`.
[[nodiscard]] More protocol_keys(const TypicalProtocols& typical);
void read_protocols(const config::Node& node, LinkSpec& link, const TypicalProtocols& typical, bool by_default);

[[nodiscard]] int read_count(const config::Node& node, int low, int high);

// `node[key]`, or `fallback` when absent.
[[nodiscard]] int read_count(const config::Node& node, std::string_view key, int low, int high, int fallback);

[[nodiscard]] config::Shape network_shape();

// Checks the keys of a `network` mapping and reads it; what it says must fit cluster.nodes and its NICs (read before).
[[nodiscard]] NetworkSpec read_network(const config::Node& node, const ClusterSpec& cluster);

// kind: graph. `node` is the network mapping.
[[nodiscard]] More graph_keys();
[[nodiscard]] SwitchGraph read_switch_graph(const config::Node& node, const ClusterSpec& cluster);

}  // namespace rehearse::topology
