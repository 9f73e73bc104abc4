#include "topology/read_link.hpp"

#include <fmt/format.h>

namespace rehearse::topology {
namespace {

constexpr double least_efficiency = 1e-3, least_bandwidth = 1e3;  // below these a step takes years
constexpr double most_bandwidth = 1e18;                           // no link is that fast

double read_efficiency(const config::Node& node) {
  const double efficiency = node.as_number(0, 1);
  if (efficiency <= 0) node.fail("efficiency must be above 0 and at most 1");
  if (efficiency < least_efficiency) node.fail("an efficiency below 0.001");
  return efficiency;
}

config::Parameter bandwidth(bool required) {
  return {"bandwidth", config::quantity(config::Dimension::bandwidth).shape, required, required ? "" : "as the NICs'",
          "Line rate, one direction."};
}

config::Parameter efficiency(std::string otherwise) {
  return {"efficiency", config::number(least_efficiency, 1).shape, false, std::move(otherwise), "Share of it that large messages reach."};
}

config::Parameter latency(std::string otherwise) {
  return {"latency", config::quantity(config::Dimension::time).shape, false, std::move(otherwise), "Of one message; at most 1 s."};
}

// The caller's keys first.
config::Shape with(const More& more, const More& own) {
  config::Shape shape{.kind = config::Shape::Kind::mapping, .keys = more};
  shape.keys.insert(shape.keys.end(), own.begin(), own.end());
  return shape;
}

}  // namespace

double read_latency(const config::Node& node) {
  const double latency = node.as_quantity(config::Dimension::time);
  if (latency > 1) node.fail("a latency above 1 s", "latencies of links are microseconds: write 5 us");
  return latency;
}

double read_bandwidth(const config::Node& node) {
  const double rate = node.as_quantity(config::Dimension::bandwidth);
  if (rate <= 0) node.fail("a bandwidth must be above 0");
  if (rate < least_bandwidth) node.fail("a bandwidth below 1 kB/s", "write 400 Gbps or 50 GB/s");
  if (rate > most_bandwidth) node.fail("a bandwidth above 1e9 GB/s", "write 400 Gbps or 50 GB/s");
  return rate;
}

config::Shape link_shape(const std::string& otherwise_efficiency, const std::string& otherwise_latency, const More& more) {
  return with(more, {bandwidth(true), efficiency(otherwise_efficiency), latency(otherwise_latency)});
}
config::Shape link_shape(const TypicalLink& otherwise, const More& more) {
  return link_shape(fmt::format("{}", otherwise.efficiency), fmt::format("{:.3g} us", otherwise.latency_s * 1e6), more);
}

LinkSpec read_link(const config::Node& node, const TypicalLink& otherwise, const More& more) {
  node.allow_keys(names_of(link_shape(otherwise, more).keys));
  LinkSpec link{.efficiency = otherwise.efficiency, .latency_s = otherwise.latency_s, .typical = !node.find("efficiency")};
  link.bandwidth_bytes_per_s = read_bandwidth(node.at("bandwidth"));
  if (!link.typical) link.efficiency = read_efficiency(node.at("efficiency"));
  if (const auto latency = node.find("latency")) link.latency_s = read_latency(*latency);
  return link;
}

config::Shape cable_shape(const More& more) {
  return config::either({bandwidth(false).shape, with(more, {bandwidth(false), efficiency("as the NICs'")})});
}

LinkSpec read_cable(const config::Node& node, const LinkSpec& fallback, const More& more) {
  LinkSpec cable = fallback;
  if (node.is_scalar()) {
    cable.bandwidth_bytes_per_s = read_bandwidth(node);
    return cable;
  }
  node.allow_keys(names_of(cable_shape(more).parts.back().keys));
  if (const auto bandwidth = node.find("bandwidth")) cable.bandwidth_bytes_per_s = read_bandwidth(*bandwidth);
  if (const auto efficiency = node.find("efficiency")) cable.efficiency = read_efficiency(*efficiency);
  return cable;
}

config::Parameter in_network_key(const InNetwork& what) {
  const More kind{{"kind", config::word({what.kind}).shape, true, "", what.product}};
  return {"in_network", with(kind, {efficiency("as the port's"), latency("as the port's")}), false, "", what.means};
}

LinkSpec read_in_network(const config::Node& node, const LinkSpec& port, const InNetwork& what) {
  node.allow_keys(names_of(in_network_key(what).shape.keys));
  LinkSpec service = port;
  if (const auto efficiency = node.find("efficiency")) service.efficiency = read_efficiency(*efficiency);
  if (const auto latency = node.find("latency")) service.latency_s = read_latency(*latency);
  static_cast<void>(config::word({what.kind}).read(node.at("kind")));
  return service;
}

namespace {

std::string microseconds(double seconds) { return fmt::format("{:.3g} us", seconds * 1e6); }

// As typical links of its kind run it, not at all, or as measured.
const config::Form<std::string>& protocol_word() {
  static const config::Form<std::string> word = config::word({"typical", "none"});
  return word;
}

config::Parameter protocol_key(std::string name, const ProtocolSpec& typical, std::string means) {
  config::Parameter call{"call", config::quantity(config::Dimension::time).shape, false, microseconds(typical.call_s),
                         "Of a call, beside its rounds; at most 1 s."};
  config::Parameter round = latency(microseconds(typical.latency_s)), share = efficiency(fmt::format("{}", typical.efficiency));
  round.means = "Of a round; at most 1 s.";
  share.means = "Share of the line rate that data reaches.";
  config::Shape measured = with({std::move(call)}, {std::move(share), std::move(round)});
  return {std::move(name), config::either({protocol_word().shape, std::move(measured)}), false,
          "typical where the link's efficiency is left out (NVLink by switches, and NICs of such nodes), otherwise none", std::move(means)};
}

std::optional<ProtocolSpec> read_protocol(const config::Node& node, const config::Parameter& key, const ProtocolSpec& typical) {
  if (node.is_scalar()) return protocol_word().read(node) == "typical" ? std::optional(typical) : std::nullopt;
  node.allow_keys(names_of(key.shape.parts.back().keys));
  ProtocolSpec spec = typical;
  if (const auto call = node.find("call")) spec.call_s = read_latency(*call);
  if (const auto latency = node.find("latency")) spec.latency_s = read_latency(*latency);
  if (const auto efficiency = node.find("efficiency")) spec.efficiency = read_efficiency(*efficiency);
  return spec;
}

}  // namespace

More protocol_keys(const TypicalProtocols& typical) {
  return {protocol_key("ll", typical.ll, "NCCL's protocol LL, for small messages of rings and trees."),
          protocol_key("ll128", typical.ll128, "NCCL's protocol LL128, likewise for middling ones.")};
}

void read_protocols(const config::Node& node, LinkSpec& link, const TypicalProtocols& typical, bool by_default) {
  const More keys = protocol_keys(typical);
  const auto read = [&](const config::Parameter& key, const ProtocolSpec& usual) {
    if (const auto given = node.find(key.name)) return read_protocol(*given, key, usual);
    return by_default ? std::optional(usual) : std::nullopt;
  };
  link.ll = read(keys[0], typical.ll);
  link.ll128 = read(keys[1], typical.ll128);
}

int read_count(const config::Node& node, int low, int high) { return static_cast<int>(node.as_int(low, high)); }

int read_count(const config::Node& node, std::string_view key, int low, int high, int fallback) {
  const auto value = node.find(key);
  return value ? read_count(*value, low, high) : fallback;
}

}  // namespace rehearse::topology
