#include "sim/federated/given_shares.hpp"

#include <fmt/format.h>

#include <charconv>
#include <fstream>
#include <map>

#include "config/reference.hpp"

namespace rehearse::federated {
namespace {

constexpr const char* titles = "name,uplink,downlink,server";

class ShareFile {
 public:
  explicit ShareFile(const config::Node& reference) : path_(config::referenced_path(reference)), file_(path_) {
    if (!file_) reference.fail(fmt::format("cannot read '{}'", path_));
  }

  std::map<std::string, LinkShares> read() {
    if (!next() || line_ != titles) refuse("the file must begin with its titles", titles);
    std::map<std::string, LinkShares> shares;
    while (next()) {
      if (line_.empty()) continue;
      const std::size_t comma = line_.find(',');
      const std::string name = line_.substr(0, comma);
      if (comma == std::string::npos) refuse(fmt::format("device '{}' has no shares", name), titles);
      if (!shares.emplace(name, row(name, comma + 1)).second) refuse(fmt::format("device '{}' stands twice", name), "");
    }
    return shares;
  }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  [[noreturn]] void refuse(const std::string& why, std::string_view hint) const {
    throw config::InputError({path_, std::max(number_, 1), 1}, why, line_, hint);
  }
  bool next() {
    if (!std::getline(file_, line_)) return false;
    ++number_;
    if (line_.ends_with('\r')) line_.pop_back();
    return true;
  }
  LinkShares row(const std::string& name, std::size_t from) const {
    std::array<double, 3> values{};
    const char *at = line_.data() + from, *end = line_.data() + line_.size();
    for (std::size_t i = 0; i < values.size(); ++i) {
      const auto [next, error] = std::from_chars(at, end, values[i]);
      const bool ends = i + 1 == values.size() ? next == end : next != end && *next == ',';
      if (error != std::errc() || !ends || !(values[i] >= 0 && values[i] <= 1)) {
        refuse(fmt::format("device '{}': a share is a number from 0 to 1", name), titles);
      }
      at = next + 1;
    }
    return {values[0], values[1], values[2]};
  }

  std::string path_, line_;
  std::ifstream file_;
  int number_ = 0;
};

// Rounding in a file's digits is no overbooking.
constexpr double whole = 1 + 1e-9;

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
    if (job.one_band() && sum.uplink + sum.downlink > whole) refuse("band", sum.uplink + sum.downlink);
    if (sum.uplink > whole) refuse("uplink", sum.uplink);
    if (sum.downlink > whole) refuse("downlink", sum.downlink);
    if (sum.server > whole) refuse("server", sum.server);
  }
}

}  // namespace

std::vector<LinkShares> read_shares(const Job& job, const CutChoice& cuts) {
  ShareFile file(job.settings.shares.file);
  const std::map<std::string, LinkShares> by_name = file.read();
  std::vector<LinkShares> shares;
  for (std::size_t n = 0; n < job.devices.size(); ++n) {
    const std::string name = job.device_name(n);
    const auto found = by_name.find(name);
    if (found == by_name.end()) throw config::InputError({file.path(), 1, 1}, fmt::format("device '{}' has no row", name));
    const LinkShares& share = found->second;
    const RoundLoad load = load_of(job, job.devices[n], cuts[n]);
    const bool dedicated = job.settings.entries[job.devices[n].entry].dedicated;
    if ((!dedicated && (share.uplink <= 0 || share.downlink <= 0)) || (load.server_s > 0 && share.server <= 0)) {
      throw config::InputError({file.path(), 1, 1}, fmt::format("device '{}' has a share of 0 of what it uses: it would never end", name));
    }
    shares.push_back(share);
  }
  check_sums(job, shares, file.path());
  return shares;
}

}  // namespace rehearse::federated
