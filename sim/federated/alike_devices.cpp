#include "sim/federated/alike_devices.hpp"

#include <map>
#include <set>
#include <tuple>

namespace rehearse::federated {
namespace {

bool may_fold(const Job& job, const Conditions& conditions) {
  const Settings& settings = job.settings;
  return settings.server.mode == ServerMode::per_device && settings.server.sharing != Sharing::fifo &&
         settings.radio.sharing != Sharing::fifo && conditions.enough == 0;
}

// Devices that are told apart by what happens to them.
std::set<std::size_t> singled_out(const Conditions& conditions) {
  std::set<std::size_t> out;
  for (const SlowSpell& spell : conditions.slow) {
    if (spell.what == SlowSpell::What::device) out.insert(spell.device);
  }
  for (std::size_t n = 0; n < conditions.leaves_at_s.size(); ++n) {
    if (conditions.leaves_at_s[n] < never) out.insert(n);
  }
  return out;
}

}  // namespace

AlikeDevices alike_devices(const Job& job, const Plan& plan, const Conditions& conditions) {
  using Likeness = std::tuple<std::uint32_t, std::uint16_t, double, double, double, double, double>;
  AlikeDevices out;
  std::map<Likeness, std::size_t> known;
  const bool fold = may_fold(job, conditions);
  const std::set<std::size_t> alone = singled_out(conditions);
  for (std::size_t n = 0; n < job.devices.size(); ++n) {
    const Device& device = job.devices[n];
    const LinkShares& share = plan.share[n];
    std::size_t which = out.representative.size();
    if (fold && job.settings.entries[device.entry].alike() && !alone.contains(n)) {
      const Likeness likeness{
          device.entry, plan.cuts[n], share.uplink, share.downlink, share.server, device.uplink_bytes_per_s, device.downlink_bytes_per_s};
      which = known.emplace(likeness, which).first->second;
    }
    if (which == out.representative.size()) {
      out.representative.push_back(n);
      out.members.push_back(0);
    }
    ++out.members[which];
    out.class_of.push_back(which);
  }
  return out;
}

}  // namespace rehearse::federated
