#include "sim/federated/given_shares.hpp"

#include <fmt/format.h>

#include <map>

#include "config/table.hpp"

namespace rehearse::federated {
namespace {

std::map<std::string, LinkShares> read_rows(config::Table& table) {
  table.check_titles({"name", "cut", "uplink", "downlink", "server"}, {"name", "uplink", "downlink", "server"});
  const std::size_t name = *table.column("name"), uplink = *table.column("uplink"), downlink = *table.column("downlink"),
                    server = *table.column("server");
  std::map<std::string, LinkShares> shares;
  while (table.next()) {
    const std::string device(table.cell(name)), whose = fmt::format("device '{}': ", device);
    const LinkShares row{table.number(uplink, 0, 1, whose), table.number(downlink, 0, 1, whose), table.number(server, 0, 1, whose)};
    if (!shares.emplace(device, row).second) table.fail_at(name, fmt::format("device '{}' stands twice", device));
  }
  return shares;
}

// Rounding in a file's digits is no overbooking.
constexpr double whole_share = 1 + 1e-9;

void check_sums(const Job& job, const std::vector<LinkShares>& shares, const std::string& path) {
  LinkShares sum;
  for (std::size_t n = 0; n < shares.size(); ++n) {
    const bool dedicated = job.settings.entries[job.devices[n].entry].dedicated;
    sum.uplink += dedicated ? 0 : shares[n].uplink;
    sum.downlink += dedicated ? 0 : shares[n].downlink;
    sum.server += shares[n].server;
    const auto refuse = [&](const char* what, double value) {
      throw config::InputError({path, 1, 1}, fmt::format("the shares of the {} add up to {:.6g} with device '{}', more than 1", what, value,
                                                         job.device_name(n)));
    };
    if (job.one_band() && sum.uplink + sum.downlink > whole_share) refuse("band", sum.uplink + sum.downlink);
    if (sum.uplink > whole_share) refuse("uplink", sum.uplink);
    if (sum.downlink > whole_share) refuse("downlink", sum.downlink);
    if (sum.server > whole_share) refuse("server", sum.server);
  }
}

}  // namespace

std::vector<LinkShares> read_shares(const Job& job, const CutChoice& cuts) {
  config::Table table(job.settings.shares.file);
  const std::string path = table.where().file;
  const std::map<std::string, LinkShares> by_name = read_rows(table);
  std::vector<LinkShares> shares;
  for (std::size_t n = 0; n < job.devices.size(); ++n) {
    const std::string name = job.device_name(n);
    const auto found = by_name.find(name);
    if (found == by_name.end()) throw config::InputError({path, 1, 1}, fmt::format("device '{}' has no row", name));
    const LinkShares& share = found->second;
    const RoundLoad load = load_of(job, job.devices[n], cuts[n]);
    const bool dedicated = job.settings.entries[job.devices[n].entry].dedicated;
    if ((!dedicated && (share.uplink <= 0 || share.downlink <= 0)) || (load.server_s > 0 && share.server <= 0)) {
      throw config::InputError({path, 1, 1}, fmt::format("device '{}' has a share of 0 of what it uses: it would never end", name));
    }
    shares.push_back(share);
  }
  check_sums(job, shares, path);
  return shares;
}

}  // namespace rehearse::federated
