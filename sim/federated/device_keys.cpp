#include <fmt/format.h>

#include <set>

#include "sim/federated/device.hpp"

namespace rehearse::federated {
namespace {

using config::Dimension;
using config::Form;
using config::Key;
using config::Keys;
using config::Node;
using config::Shape;

constexpr double most_samples = 1e12, longest_s = 1e9;

Form<Drawn> drawn(Dimension dimension) { return Drawn::form(config::quantity(dimension)); }

Form<Drawn> distance_form() {
  return Drawn::form(config::quantity(Dimension::length).checked([](const Node& node, double metres) {
    if (metres < 1) node.fail("nearer than a metre the path loss says nothing");
  }));
}

const Keys<PowerDraw>& power_keys() {
  using K = Key<PowerDraw>;
  static const Keys<PowerDraw> keys{
      K("compute", &PowerDraw::compute_w, config::quantity(Dimension::power), "While it computes.").required(),
      K("transmit", &PowerDraw::transmit_w, config::quantity(Dimension::power), "While it sends.").required(),
      K("receive", &PowerDraw::receive_w, config::quantity(Dimension::power), "While it receives.").required(),
      K("idle", &PowerDraw::idle_w, config::quantity(Dimension::power), "The rest of the round.").required(),
  };
  return keys;
}

const Keys<Entry>& place_keys() {
  using K = Key<Entry>;
  static const Keys<Entry> keys{K("distance", &Entry::distance_m, distance_form(), "To the base station.").required()};
  return keys;
}

const Keys<Entry>& entry_keys() {
  using K = Key<Entry>;
  static const Keys<Entry> keys{
      K("name", &Entry::name, config::text(), "By which its devices are called.").required(),
      K("count", &Entry::count, config::whole(1, most_devices), "So many devices."),
      K("speed", &Entry::flop_per_s, drawn(Dimension::compute_rate), "FLOP/s as achieved in training, not the peak.").required(),
      K("memory", &Entry::memory_bytes, drawn(Dimension::bytes), "For weights, gradients, momentum and activations.")
          .otherwise("no limit")
          .written_if([](const Entry& entry) { return entry.memory_bytes != Drawn(); }),
      K("samples", &Entry::samples, Drawn::form(config::number(1, most_samples)), "Samples that a device has.").required(),
      K("uplink", &Entry::uplink_bytes_per_s, drawn(Dimension::bandwidth), "Rate with the whole band, or of a dedicated link.")
          .otherwise("from radio.distance"),
      K("downlink", &Entry::downlink_bytes_per_s, drawn(Dimension::bandwidth), "Rate with the whole band, or of a dedicated link.")
          .otherwise("from radio.distance"),
      K("link", &Entry::dedicated, config::either_word("shared", "dedicated"), "dedicated: nobody else uses it, no share is taken."),
      K(
          "radio", place_keys().shape(), [](const Node& node, Entry& entry) { place_keys().read(node, entry); },
          [](const Entry& entry) { return entry.distance_m ? place_keys().write(entry) : Node(); }, "Instead of uplink and downlink."),
      K("latency", &Entry::latency_s, drawn(Dimension::time), "Of every message."),
      K("leakage", &Entry::leakage, Drawn::form(config::number(0, 1)), "Limit: cuts that leak more are not taken.")
          .otherwise("federated.leakage.limit"),
      K("power", &Entry::power, mapping(power_keys()), "What it draws; without it no energy is printed."),
  };
  return keys;
}

void check(const Node& node, const Entry& entry) {
  const auto named = [&](std::string_view what) { return fmt::format("device '{}' {}", entry.name, what); };
  if (entry.distance_m && (entry.uplink_bytes_per_s || entry.downlink_bytes_per_s)) {
    node.at("radio").fail_at_key(named("has rates and a distance"), "give uplink and downlink, or radio: {distance: 120 m}");
  }
  if (!entry.distance_m && !entry.uplink_bytes_per_s)
    node.fail(named("has no uplink"), "give uplink and downlink, or radio: {distance: 120 m}");
  if (!entry.distance_m && !entry.downlink_bytes_per_s)
    node.fail(named("has no downlink"), "give uplink and downlink, or radio: {distance: 120 m}");
  if (entry.distance_m && entry.dedicated) node.at("link").fail(named("is in the cell: its link is shared"), "give uplink and downlink");
  if (entry.latency_s.mean() > longest_s) node.at("latency").fail(named("has a latency of more than 30 years"));
}

Entry read_entry(const Node& node) {
  Entry entry;
  entry_keys().read(node, entry);
  entry.where = node.where();
  check(node, entry);
  return entry;
}

void check_all(const Node& node, const std::vector<Entry>& entries) {
  if (entries.empty()) node.fail("no devices", "list at least one");
  std::int64_t devices = 0;
  std::set<std::string> names;
  for (const Entry& entry : entries) {
    devices += entry.count;
    if (!names.insert(entry.name).second) throw config::InputError(entry.where, fmt::format("device '{}' is listed twice", entry.name));
  }
  if (devices > most_devices) node.fail(fmt::format("{} devices; {} is the most", devices, most_devices));
}

}  // namespace

std::vector<Entry> read_entries(const Node& node) {
  std::vector<Entry> entries;
  if (node.is_map()) {
    node.allow_keys({"file"});
    entries = read_device_csv(node.at("file"));
  } else {
    for (const Node& item : node.items()) entries.push_back(read_entry(item));
  }
  check_all(node, entries);
  return entries;
}

Node write_entries(const std::vector<Entry>& entries) {
  std::vector<Node> nodes;
  for (const Entry& entry : entries) nodes.push_back(entry_keys().write(entry));
  return Node::list(nodes);
}

Shape entries_shape() {
  Shape file{.kind = Shape::Kind::mapping};
  file.keys.push_back({"file", {.kind = Shape::Kind::text}, true, "", "A CSV file of devices."});
  return config::either({{.kind = Shape::Kind::list, .parts = {entry_keys().shape()}}, file});
}

}  // namespace rehearse::federated
