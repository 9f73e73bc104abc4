#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "config/table.hpp"
#include "sim/federated/job.hpp"
#include "sim/federated/leakage.hpp"

namespace rehearse::federated {
namespace {

using config::Node;

std::vector<std::string> names_of(const std::vector<Cut>& cuts) {
  std::vector<std::string> names;
  for (const Cut& cut : cuts) names.push_back(cut.name);
  return names;
}

// Weights, gradients and momentum, and what is kept of a batch.
double memory_bytes(const Job& job, const Cut& cut) {
  constexpr double copies = 3;
  return copies * cut.parameter_bytes + static_cast<double>(job.settings.batch) * cut.kept_bytes;
}

bool fits(const Job& job, const Device& device, std::size_t cut) {
  if (job.leakage[cut] > device.leakage_limit) return false;
  if (job.model.tied && cut + 1 < job.cuts.size()) return false;
  return device.memory_bytes == 0 || memory_bytes(job, job.cuts[cut]) <= device.memory_bytes;
}

[[noreturn]] void refuse_device(const Job& job, std::size_t device) {
  const Device& which = job.devices[device];
  const Entry& entry = job.settings.entries[which.entry];
  std::string nearest = "none needs the whole model";
  for (std::size_t c = 0; c < job.cuts.size(); ++c) {
    if (job.leakage[c] > which.leakage_limit || (job.model.tied && c + 1 < job.cuts.size())) continue;
    nearest = fmt::format("'{}' leaks little enough and needs {} of memory, it has {}", job.cuts[c].name,
                          config::human_quantity(memory_bytes(job, job.cuts[c]), config::Dimension::bytes),
                          config::human_quantity(which.memory_bytes, config::Dimension::bytes));
    break;
  }
  throw config::InputError(
      entry.where,
      fmt::format("device '{}' has no cut within its leakage limit of {} and its memory", job.device_name(device), which.leakage_limit), {},
      nearest);
}

void find_available(Job& job) {
  std::vector<std::uint16_t> order(job.cuts.size());
  for (std::size_t c = 0; c < order.size(); ++c) order[c] = static_cast<std::uint16_t>(c);
  std::ranges::stable_sort(order, [&](std::uint16_t a, std::uint16_t b) {
    return job.leakage[a] < job.leakage[b] || (job.leakage[a] == job.leakage[b] && job.cuts[a].name < job.cuts[b].name);
  });
  job.available.resize(job.devices.size());
  for (std::size_t n = 0; n < job.devices.size(); ++n) {
    for (const std::uint16_t cut : order) {
      if (fits(job, job.devices[n], cut)) job.available[n].push_back(cut);
    }
    if (job.available[n].empty()) refuse_device(job, n);
  }
}

void measure_leakage(const Node& node, Job& job) {
  const LeakageMeasure& measure = LeakageRegistry::get(job.settings.leakage.measure);
  for (const Cut& cut : job.cuts) {
    try {
      job.leakage.push_back(measure.of(cut, cut.parameter_bytes / job.cuts.back().parameter_bytes));
    } catch (const config::InputError& error) {
      node.fail(error.message(), "give each unit but the last `leakage`, with its source in a comment");
    }
  }
}

void check_cut_name(const Node& node, const Job& job, const std::string& name, bool words) {
  std::vector<std::string> known = names_of(job.cuts);
  if (std::ranges::find(known, name) != known.end()) return;
  if (words && (name == "tuned" || name == "random")) return;
  if (words) known.insert(known.begin(), {"tuned", "random"});
  node.fail(fmt::format("{} has no unit '{}' to cut behind", job.model.name, name), config::suggestion(name, known));
}

// The device of that entry to which a cut is not available.
void check_allowed(const Node& node, const Job& job, const std::string& cut_name, std::size_t entry) {
  const std::vector<std::string> known = names_of(job.cuts);
  const auto cut = static_cast<std::uint16_t>(std::ranges::find(known, cut_name) - known.begin());
  for (std::size_t n = 0; n < job.devices.size(); ++n) {
    if (job.devices[n].entry != entry || std::ranges::find(job.available[n], cut) != job.available[n].end()) continue;
    if (job.model.tied && cut_name != no_cut)
      node.fail(fmt::format("{} has tied embeddings: its head needs the device's matrix", job.model.name), "the only cut is none");
    node.fail(fmt::format("device '{}' may not cut at '{}': leakage {:.4g}, limit {:.4g}, memory {}", job.device_name(n), cut_name,
                          job.leakage[cut], job.devices[n].leakage_limit,
                          config::human_quantity(memory_bytes(job, job.cuts[cut]), config::Dimension::bytes)));
  }
}

// Each device's cut by a file, which may also say its shares.
std::vector<std::uint16_t> read_cuts(const Job& job) {
  config::Table table(job.settings.cuts.file);
  table.check_titles({"name", "cut", "uplink", "downlink", "server"}, {"name", "cut"});
  const std::size_t name = *table.column("name"), cut = *table.column("cut");
  const std::vector<std::string> known = names_of(job.cuts);
  std::map<std::string, std::size_t, std::less<>> device_called;
  for (std::size_t n = 0; n < job.devices.size(); ++n) device_called.emplace(job.device_name(n), n);
  constexpr std::uint16_t missing = UINT16_MAX;
  std::vector<std::uint16_t> cuts(job.devices.size(), missing);
  while (table.next()) {
    const auto device = device_called.find(table.cell(name));
    if (device == device_called.end()) table.fail_at(name, fmt::format("no device is called {}", config::shown(table.cell(name))));
    const auto found = std::ranges::find(known, table.cell(cut));
    if (found == known.end()) {
      const std::string word(table.cell(cut));
      table.fail_at(cut, fmt::format("{} has no unit '{}' to cut behind", job.model.name, word), config::suggestion(word, known));
    }
    if (cuts[device->second] != missing) table.fail_at(name, fmt::format("device '{}' stands twice", device->first));
    cuts[device->second] = static_cast<std::uint16_t>(found - known.begin());
    if (std::ranges::find(job.available[device->second], cuts[device->second]) == job.available[device->second].end())
      table.fail_at(cut, fmt::format("device '{}' may not cut at '{}' (leakage, memory)", device->first, *found));
  }
  const auto without = std::ranges::find(cuts, missing);
  if (without != cuts.end())
    table.fail(fmt::format("device '{}' has no cut", job.device_name(static_cast<std::size_t>(without - cuts.begin()))));
  return cuts;
}

void check_cuts(const Node& node, Job& job) {
  const CutRule& rule = job.settings.cuts;
  if (rule.file) {
    job.given_cuts = read_cuts(job);
    return;
  }
  if (rule.by_entry.empty()) {
    check_cut_name(node, job, rule.for_all, true);
    if (rule.for_all == "tuned" || rule.for_all == "random") return;
    for (std::size_t entry = 0; entry < job.settings.entries.size(); ++entry) check_allowed(node, job, rule.for_all, entry);
    return;
  }
  std::vector<std::string> entries;
  for (const Entry& entry : job.settings.entries) entries.push_back(entry.name);
  for (const auto& [name, cut] : rule.by_entry) {
    const auto found = std::ranges::find(entries, name);
    if (found == entries.end()) node.at(name).fail_at_key(fmt::format("no device is called '{}'", name), config::suggestion(name, entries));
    check_cut_name(node.at(name), job, cut, false);
    check_allowed(node.at(name), job, cut, static_cast<std::size_t>(found - entries.begin()));
  }
  for (const std::string& name : entries) {
    if (!rule.by_entry.contains(name)) node.fail(fmt::format("device '{}' has no cut", name), "name a cut for every name of devices");
  }
}

void check_together(const Node& section, const Job& job) {
  const Settings& settings = job.settings;
  const auto key = [&](const char* path) { return section.find_path(path).value_or(section); };
  const CutRule& rule = settings.cuts;
  if (settings.server.mode == ServerMode::batched && !(rule.tuned() || (rule.one_word() && rule.for_all != "random"))) {
    key("cuts").fail("server.mode batched joins the batches of all devices: they need one cut for all", "cuts: tuned, or a unit's name");
  }
  if (settings.select.devices > static_cast<std::int64_t>(job.devices.size()))
    key("select.devices").fail(fmt::format("{} of {} devices", settings.select.devices, job.devices.size()));
  const auto by_rates = std::ranges::find_if(settings.entries, [](const Entry& entry) { return !entry.distance_m; });
  if (settings.radio.fading != Fading::none && by_rates != settings.entries.end()) {
    key("radio.fading")
        .fail(fmt::format("device '{}' has rates: what fading does to them depends on its signal", by_rates->name),
              "radio: {distance: 120 m} instead of uplink and downlink");
  }
  if (settings.broadcast && settings.server.mode != ServerMode::batched)
    key("broadcast").fail("one message for all needs the gradients of all at once", "server: {mode: batched}");
  const auto dedicated = std::ranges::find_if(settings.entries, [](const Entry& entry) { return entry.dedicated; });
  if (settings.broadcast && dedicated != settings.entries.end())
    key("broadcast").fail(fmt::format("device '{}' has a link of its own and hears no broadcast", dedicated->name));
  if (!settings.radio.rates.empty() && (settings.radio.fading != Fading::none || job.total_power()))
    key("radio.rates").fail("rates over time leave nothing to a signal: they go with fading none and power per-hertz");
  if (job.total_power() && job.one_band())
    key("radio.power").fail("total power is worked out for a band of the uplink's own", "duplex: fdd");
  if (job.total_power() && by_rates != settings.entries.end()) {
    key("radio.power").fail("total power needs the distance of every device", "radio: {distance: 120 m} instead of uplink and downlink");
  }
  if (job.total_power() && settings.radio.sharing == Sharing::weighted)
    key("radio.sharing")
        .fail("with total power a device's rate is not in proportion to its share: weights do not say what it gets", "reserved or fifo");
  if (job.total_power() && (settings.server.mode != ServerMode::per_device || settings.objective == Objective::sum))
    key("radio.power").fail("total power goes with server.mode per-device and objective round");
}

// The round that is predicted or simulated alone is the one at time 0.
void take_rates(Job& job) {
  const std::vector<RateRow>& rows = job.settings.radio.rates;
  if (rows.empty()) return;
  std::vector<std::string> names;
  for (std::size_t n = 0; n < job.devices.size(); ++n) names.push_back(job.device_name(n));
  job.rates = std::make_shared<const RatesOverTime>(rows, names);
  for (std::size_t n = 0; n < job.devices.size(); ++n) job.rates->apply(n, 0, job.devices[n]);
}

}  // namespace

Job read_job(const std::string& name, const Node& document, const std::optional<std::uint64_t>& seed) {
  Job job;
  Settings& settings = job.settings;
  job_keys().read(document, settings);
  if (seed) settings.seed = *seed;
  if (settings.name.empty()) settings.name = name;
  job.name = settings.name;
  const Node section = document.at("federated");
  job.model = find_chain(settings.model, section.find("sequence"), {settings.sequence.value_or(0), settings.element_bytes});
  job.cuts = cuts_of(job.model);
  measure_leakage(section.find("leakage").value_or(section), job);
  for (Entry& entry : settings.entries) {
    if (entry.s_per_sample) entry.flop_per_s = Drawn(job.cuts.back().forward_flops / *entry.s_per_sample);
  }
  job.devices = make_devices(settings.entries, settings.radio, settings.leakage.limit, settings.seed);
  take_rates(job);
  find_available(job);
  check_cuts(section.find("cuts").value_or(section), job);
  check_together(section, job);
  return job;
}

}  // namespace rehearse::federated
