#include "executor.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <tuple>

#include "ports.hpp"

namespace rehearse::tests {
namespace {

using workloads::ClosedForm;
using workloads::GroupShape;
using workloads::Round;
using workloads::Transfer;

constexpr double never = std::numeric_limits<double>::infinity();

// What a transfer waits for: `start` before its alpha, `stream` before its bytes. -1 = nothing.
struct Waits {
  std::vector<std::size_t> start;
  std::ptrdiff_t stream = -1;
};

// The last transfer between two members on a channel; those before it ended earlier.
using Last = std::map<std::tuple<int, int, int>, std::size_t>;  // (channel, from, to)

Waits waits_of(const Transfer& t, const Last& last) {
  Waits waits;
  for (const auto& [key, earlier] : last) {
    const auto [channel, from, to] = key;
    if (channel != t.channel) continue;
    if (from == t.from && to == t.to) {
      waits.stream = static_cast<std::ptrdiff_t>(earlier);
    } else if (to == t.from || from == t.from || to == t.to) {
      waits.start.push_back(earlier);
    }
  }
  return waits;
}

std::vector<Waits> all_waits(const std::vector<Round>& rounds) {
  std::vector<Waits> out;
  Last last;
  for (const Round& round : rounds) {
    const std::size_t first = out.size();
    for (const Transfer& t : round.transfers) out.push_back(waits_of(t, last));
    for (std::size_t i = 0; i < round.transfers.size(); ++i) {
      const Transfer& t = round.transfers[i];
      last[{t.channel, t.from, t.to}] = first + i;
    }
  }
  return out;
}

class Execution {
 public:
  Execution(const std::vector<Round>& rounds, const GroupShape& group, const Speeds& speeds)
      : transfers_(flatten(rounds)), waits_(all_waits(rounds)), ports_(group), speeds_(speeds) {
    successors_.resize(transfers_.size());
    for (std::size_t i = 0; i < transfers_.size(); ++i) {
      pending_.push_back(waits_[i].start.size());
      left_.push_back(transfers_[i].bytes);
      for (const std::size_t before : waits_[i].start) successors_[before].push_back(i);
      if (waits_[i].stream >= 0) followers_[static_cast<std::size_t>(waits_[i].stream)] = i;
    }
    ended_.resize(transfers_.size(), false);
    alpha_over_.resize(transfers_.size(), false);
  }

  double run() {
    for (std::size_t i = 0; i < transfers_.size(); ++i) {
      if (pending_[i] == 0) begin_alpha(i);
    }
    while (!alphas_.empty() || !flows_.empty()) step();
    return std::count(ended_.begin(), ended_.end(), false) == 0 ? now_ : never;
  }

 private:
  void begin_alpha(std::size_t i) {
    alphas_.insert({now_ + (ports_.crosses(transfers_[i]) ? speeds_.alpha_inter_s : speeds_.alpha_intra_s), i});
  }

  void try_flow(std::size_t i) {
    const auto stream = waits_[i].stream;
    if (alpha_over_[i] && (stream < 0 || ended_[static_cast<std::size_t>(stream)])) flows_.insert(i);
  }

  void end(std::size_t i) {
    flows_.erase(i);
    ended_[i] = true;
    for (const std::size_t next : successors_[i]) {
      if (--pending_[next] == 0) begin_alpha(next);
    }
    if (const auto next = followers_.find(i); next != followers_.end()) try_flow(next->second);
  }

  // To the next end of a flow or of an alpha. Events nearer than 1e-12 of the clock count as one: rounding must not tear lockstep apart.
  void step() {
    const auto rates = max_min_rates();
    double next = alphas_.empty() ? never : alphas_.begin()->first;
    for (const auto& [flow, rate] : rates) next = std::min(next, now_ + left_[flow] / rate);
    const double same = next + 1e-12 * next;
    std::vector<std::size_t> done;
    for (const auto& [flow, rate] : rates) {
      if (now_ + left_[flow] / rate <= same) done.push_back(flow);
      left_[flow] -= rate * (next - now_);
    }
    now_ = next;
    for (const std::size_t flow : done) end(flow);
    while (!alphas_.empty() && alphas_.begin()->first <= same) {
      const std::size_t ready = alphas_.begin()->second;
      alphas_.erase(alphas_.begin());
      alpha_over_[ready] = true;
      try_flow(ready);
    }
  }

  struct Load {
    double capacity = 0;
    int flows = 0;
  };

  // Progressive filling: the port with the smallest fair share fixes its flows, and so on.
  std::map<std::size_t, double> max_min_rates() const {
    std::map<Port, Load> load;
    for (const std::size_t flow : flows_) {
      for (const Port& port : ports_.of(transfers_[flow])) {
        load[port].capacity = port.nic() ? speeds_.inter_bytes_per_s : speeds_.intra_bytes_per_s;
        ++load[port].flows;
      }
    }
    std::map<std::size_t, double> rates;
    while (rates.size() < flows_.size()) fix_tightest(load, rates);
    return rates;
  }

  void fix_tightest(std::map<Port, Load>& load, std::map<std::size_t, double>& rates) const {
    double share = never;
    for (const auto& [port, l] : load) share = l.flows > 0 ? std::min(share, l.capacity / l.flows) : share;
    std::set<Port> tight;
    for (const auto& [port, l] : load) {
      if (l.flows > 0 && l.capacity / l.flows <= share * (1 + 1e-12)) tight.insert(port);
    }
    for (const std::size_t flow : flows_) {
      const auto used = ports_.of(transfers_[flow]);
      if (rates.contains(flow) || std::ranges::none_of(used, [&](const Port& port) { return tight.contains(port); })) continue;
      rates[flow] = share;
      for (const Port& port : used) {
        load[port].capacity -= share;
        --load[port].flows;
      }
    }
  }

  std::vector<Transfer> transfers_;
  std::vector<Waits> waits_;
  Ports ports_;
  Speeds speeds_;
  double now_ = 0;
  std::vector<std::size_t> pending_;
  std::vector<double> left_;
  std::vector<std::vector<std::size_t>> successors_;
  std::map<std::size_t, std::size_t> followers_;  // the next transfer of the same stream
  std::vector<bool> ended_, alpha_over_;
  std::set<std::pair<double, std::size_t>> alphas_;  // (end, transfer)
  std::set<std::size_t> flows_;
};

}  // namespace

std::vector<Transfer> flatten(const std::vector<Round>& rounds) {
  std::vector<Transfer> out;
  for (const Round& round : rounds) out.insert(out.end(), round.transfers.begin(), round.transfers.end());
  return out;
}

double execute(const std::vector<Round>& rounds, const GroupShape& group, const Speeds& speeds) {
  return Execution(rounds, group, speeds).run();
}

double alphas(const ClosedForm& form, const Speeds& speeds) {
  return form.rounds_intra * speeds.alpha_intra_s + form.rounds_inter * speeds.alpha_inter_s;
}

double evaluate(const ClosedForm& form, const Speeds& speeds) {
  const double intra = form.intra_bytes / speeds.intra_bytes_per_s, inter = form.inter_bytes / speeds.inter_bytes_per_s;
  return alphas(form, speeds) + (form.sequential ? intra + inter : std::max(intra, inter));
}

BusiestPorts busiest_ports(const std::vector<Transfer>& transfers, const GroupShape& group) {
  const Ports ports(group);
  std::map<Port, double> bytes;
  for (const Transfer& t : transfers) {
    for (const Port& port : ports.of(t)) bytes[port] += t.bytes;
  }
  BusiestPorts out;
  for (const auto& [port, sum] : bytes) {
    double& most = port.nic() ? out.inter : out.intra;
    most = std::max(most, sum);
  }
  return out;
}

}  // namespace rehearse::tests
