#include "sim/engine/call_loads.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

namespace rehearse::sim {
namespace {

using workloads::CollectiveKind;
using workloads::Communication;
using workloads::GroupKind;
using workloads::Transfer;

using Wires = std::vector<std::pair<Wire, int>>;

Wires counted(std::vector<Wire> wires) {
  std::ranges::sort(wires);
  Wires out;
  for (const Wire wire : wires) {
    if (out.empty() || out.back().first != wire) out.emplace_back(wire, 0);
    ++out.back().second;
  }
  return out;
}

Wires once_each(Wires wires) {
  for (auto& [wire, times] : wires) times = 1;
  return wires;
}

class Loads {
 public:
  Loads(const Communication& what, const CallPrice& price, std::span<const int> members, const CommunicationModel& model,
        const Wiring& wiring, std::uint64_t flow)
      : what_(what),
        price_(price),
        members_(members),
        model_(model),
        wiring_(wiring),
        flow_(flow),
        between_nodes_(wiring.between_nodes(members)) {}

  [[nodiscard]] std::vector<Load> all() {
    if (price_.kind == CallKind::none || price_.intra_bytes + price_.inter_bytes + price_.host_bytes <= 0) return {};
    if (price_.kind == CallKind::copy) return copy();
    if (what_.exchange) return exchange();
    return price_.sequential || rounds_follow() ? in_phases() : merged();
  }

 private:
  [[nodiscard]] int rail_of(const Transfer& t) const { return t.rail_of < 0 ? -1 : wiring_.rail_of(members_[t.rail_of]); }

  void route(const Transfer& t, std::vector<Wire>& into) const {
    if (workloads::between_domains(t.in_switch)) return way_to_switches(t, into);
    if (t.in_switch != workloads::InSwitch::nothing) return ports_of_pass(t, into);
    wiring_.route(members_[t.from], members_[t.to], rail_of(t), flow_, into);
  }

  // A switch adds up what the ports of all members of the domain send and passes it to one, or passes what one sends to all.
  void ports_of_pass(const Transfer& t, std::vector<Wire>& into) const {
    const bool reduction = t.in_switch == workloads::InSwitch::reduction;
    for (const int member : members_) {
      if (wiring_.same_domain(member, members_[t.to])) wiring_.scale_up_port(member, reduction, between_nodes_, into);
    }
    wiring_.scale_up_port(members_[t.to], !reduction, between_nodes_, into);
  }

  // Out of or into the member's own NIC, and over the tree of switches to that of the member in whose name the sum is.
  void way_to_switches(const Transfer& t, std::vector<Wire>& into) const {
    const int from = members_[t.from], to = members_[t.to];
    const bool up = t.in_switch == workloads::InSwitch::reduction_between;
    const int own = up ? from : to;
    wiring_.nic_port(own, up, into);
    if (from == to) return;
    if (up) {
      wiring_.tree_to(to, from, wiring_.rail_of(own), flow_, into);
    } else {
      wiring_.tree_from(from, to, wiring_.rail_of(own), flow_, into);
    }
  }

  // Sums of one name, on their way up or down: switches pass on one where several meet.
  using Carried = std::set<std::tuple<int, workloads::InSwitch, Wire>>;
  void route_once(const Transfer& t, Carried& carried, std::vector<Wire>& into) const {
    const auto first = static_cast<std::ptrdiff_t>(into.size());
    route(t, into);
    if (!workloads::between_domains(t.in_switch)) return;
    const int name = t.in_switch == workloads::InSwitch::reduction_between ? t.to : t.from;
    const auto again = [&](Wire wire) { return !carried.emplace(name, t.in_switch, wire).second; };
    into.erase(std::remove_if(into.begin() + first, into.end(), again), into.end());
  }

  [[nodiscard]] std::vector<Load> copy() const {
    std::vector<Wire> wires;
    wiring_.host_copy(members_.front(), what_.group, wires);
    return {{0, price_.intra_bytes + price_.host_bytes, counted(std::move(wires))}};
  }

  [[nodiscard]] std::vector<Load> merged() const {
    const std::vector<Transfer> transfers = messages_of(what_, price_, members_, model_);
    const bool even = std::ranges::all_of(transfers, [&](const Transfer& t) { return t.bytes == transfers.front().bytes; });
    if (!even || what_.kind == CollectiveKind::all_to_all) return by_volume(transfers);
    std::vector<Wire> wires;
    Carried carried;
    for (const Transfer& t : transfers) route_once(t, carried, wires);
    return {{0, transfers.front().bytes, counted(std::move(wires))}};
  }

  // Volumes that differ by rounding alone are one.
  static double rounded(double bytes) {
    int exponent = 0;
    const double mantissa = std::frexp(bytes, &exponent);
    return std::ldexp(std::round(std::ldexp(mantissa, 40)), exponent - 40);
  }

  [[nodiscard]] std::vector<Load> by_volume(const std::vector<Transfer>& transfers) const {
    std::map<Wire, double> bytes;
    std::vector<Wire> wires;
    Carried carried;
    for (const Transfer& t : transfers) {
      wires.clear();
      route_once(t, carried, wires);
      for (const Wire wire : wires) bytes[wire] += t.bytes;
    }
    return one_for_each_volume(bytes);
  }

  [[nodiscard]] static std::vector<Load> one_for_each_volume(const std::map<Wire, double>& bytes) {
    std::map<double, Wires> wires_of;
    for (const auto& [wire, all] : bytes) wires_of[rounded(all)].emplace_back(wire, 1);
    std::vector<Load> loads;
    loads.reserve(wires_of.size());
    for (auto& [volume, wires] : wires_of) loads.push_back({0, volume, std::move(wires)});
    return loads;
  }

  // Such as the pairwise exchange over a mesh, which uses one link after the other.
  [[nodiscard]] bool rounds_follow() const {
    return what_.kind != CollectiveKind::send_recv && (pace() == workloads::Pace::rounds || pace() == workloads::Pace::phases);
  }
  [[nodiscard]] workloads::Pace pace() const { return price_.collective->pace(what_.kind, model_.shape(members_)); }

  // Where every pair has cables of its own, what one round loads another does not.
  [[nodiscard]] std::vector<Load> round_by_round() const {
    std::vector<Load> loads;
    int phase = 0;
    const workloads::GroupShape shape = model_.shape(members_);
    for (workloads::Round& round : price_.collective->rounds(what_.kind, shape, what_.bytes)) {
      if (round.transfers.empty()) continue;
      price_.weigh(round.transfers, shape);
      for (Load& load : by_volume(round.transfers)) {
        load.phase = phase;
        loads.push_back(std::move(load));
      }
      ++phase;
    }
    return loads;
  }

  [[nodiscard]] std::vector<Load> in_phases() const {
    if (wiring_.routes_one_by_one() && price_.inter_bytes > 0 && pace() == workloads::Pace::rounds) return round_by_round();
    std::vector<Wire> inside, between;
    for (const Transfer& t :
         workloads::CollectiveRegistry::get("ring").volumes(CollectiveKind::all_gather, model_.shape(members_), what_.bytes)) {
      route(t, wiring_.same_domain(members_[t.from], members_[t.to]) ? inside : between);
    }
    std::vector<Load> loads;
    if (price_.intra_bytes > 0) loads.push_back({0, price_.intra_bytes, once_each(counted(std::move(inside)))});
    const int last = price_.sequential ? static_cast<int>(loads.size()) : 0;
    if (price_.inter_bytes > 0) loads.push_back({last, price_.inter_bytes, counted(std::move(between))});
    return loads;
  }

  void add_port(std::vector<Load>& loads, std::size_t member, bool nic, bool out, double bytes) const {
    if (bytes <= 0) return;
    std::vector<Wire> wires;
    if (nic) {
      wiring_.nic_port(members_[member], out, wires);
    } else {
      wiring_.scale_up_port(members_[member], out, between_nodes_, wires);
    }
    loads.push_back({0, bytes, counted(std::move(wires)), static_cast<int>(member)});
  }

  [[nodiscard]] std::vector<Load> exchange() const {
    const workloads::PortLoads ports = model_.loads(what_, members_);
    std::vector<Load> loads;
    for (std::size_t i = 0; i < members_.size(); ++i) {
      add_port(loads, i, false, true, ports.intra_out[i] * price_.scale_up_overhead);
      add_port(loads, i, false, false, ports.intra_in[i] * price_.scale_up_overhead);
      add_port(loads, i, true, true, ports.inter_out[i] * price_.nic_overhead);
      add_port(loads, i, true, false, ports.inter_in[i] * price_.nic_overhead);
    }
    if (!wiring_.has_trunks()) return loads;
    for (Load& load : one_for_each_volume(exchange_over_trunks(ports))) loads.push_back(std::move(load));
    return loads;
  }

  // Every pair's bytes over its route; where copies of a token travel together, by as much less as they do through the sender's NIC.
  [[nodiscard]] std::map<Wire, double> exchange_over_trunks(const workloads::PortLoads& ports) const {
    std::map<Wire, double> bytes;
    std::vector<std::pair<Wire, double>> of_sender;
    std::vector<Wire> wires;
    for (std::size_t from = 0; from < members_.size(); ++from) {
      of_sender.clear();
      double leaving = 0;
      for (std::size_t to = 0; to < members_.size(); ++to) {
        if (wiring_.same_domain(members_[from], members_[to])) continue;
        const double sent = what_.exchange->bytes(static_cast<int>(from), static_cast<int>(to));
        leaving += sent;
        wires.clear();
        wiring_.trunks(members_[from], members_[to], wiring_.rail_of(members_[from]), flow_, wires);
        for (const Wire wire : wires) of_sender.emplace_back(wire, sent);
      }
      for (const auto& [wire, sent] : of_sender)
        bytes[wire] += leaving > 0 ? sent * price_.nic_overhead * ports.inter_out[from] / leaving : 0;
    }
    std::erase_if(bytes, [](const auto& entry) { return entry.second <= 0; });
    return bytes;
  }

  const Communication& what_;
  const CallPrice& price_;
  std::span<const int> members_;
  const CommunicationModel& model_;
  const Wiring& wiring_;
  std::uint64_t flow_;
  bool between_nodes_;
};

}  // namespace

std::vector<Load> loads_of(const Communication& what, const CallPrice& price, std::span<const int> members, const CommunicationModel& model,
                           const Wiring& wiring, std::uint64_t flow) {
  return Loads(what, price, members, model, wiring, flow).all();
}

bool flows_in_every_round(const Communication& what, const CallPrice& price, std::span<const int> members,
                          const CommunicationModel& model) {
  if (what.exchange) return price.kind != CallKind::exchange;
  return price.collective != nullptr && price.collective->pace(what.kind, model.shape(members)) == workloads::Pace::chunks;
}

std::vector<Transfer> messages_of(const Communication& what, const CallPrice& price, std::span<const int> members,
                                  const CommunicationModel& model) {
  const int n = static_cast<int>(members.size());
  std::vector<Transfer> all;
  if (what.kind == CollectiveKind::send_recv) {
    for (int i = 0; i < (what.group == GroupKind::pp ? 1 : n); ++i) all.push_back({.from = i, .to = (i + 1) % n, .bytes = what.bytes});
  } else if (what.exchange) {
    const workloads::GroupShape shape = model.shape(members);
    for (int i = 0; i < n * n; ++i) {
      if (i / n != i % n) all.push_back({.from = i / n, .to = i % n, .bytes = what.exchange->bytes(i / n, i % n)});
    }
    price.weigh(all, shape);
  } else if (price.collective != nullptr) {
    const workloads::GroupShape shape = model.shape(members);
    all = price.collective->volumes(what.kind, shape, what.bytes);
    price.weigh(all, shape);
  }
  return all;
}

Load load_of_message(int from, int to, double bytes, int rail, const Wiring& wiring, std::uint64_t flow) {
  std::vector<Wire> wires;
  wiring.route(from, to, rail, flow, wires);
  return {0, bytes, counted(std::move(wires))};
}

}  // namespace rehearse::sim
