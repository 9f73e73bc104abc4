#include "sim/federated/run_rounds.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

#include "sim/federated/batched.hpp"
#include "sim/federated/energy.hpp"
#include "sim/federated/faults.hpp"
#include "sim/federated/negotiation_time.hpp"
#include "sim/federated/simulate_round.hpp"

namespace rehearse::federated {
namespace {

// Fields of a device's draws that are anew in each round.
enum Draw : std::uint64_t { selection = 200, uplink_gain, downlink_gain, leaves, leaves_at };

class Run {
 public:
  Run(const Job& job, const std::function<void(double)>& progress)
      : job_(job), progress_(progress), plan_(make_plan(job)), server_(field_random(job.settings.seed, 0, 300)) {
    history_.seed = job.settings.seed;
    conditions_ = conditions_of(job, {});
    next_failure_s_ = time_to_failure_s();
  }

  RunHistory run() {
    const auto rounds = static_cast<std::size_t>(job_.settings.rounds);
    constexpr std::size_t most_lost = 1000;  // of rounds that count
    for (std::size_t done = 0, lost = 0; done < rounds;) {
      const RoundRow row = round(history_.rounds.size());
      history_.rounds.push_back(row);
      history_.training_s = row.begins_s + row.round_s + row.repair_s;
      row.lost ? ++lost : ++done;
      if (lost > most_lost * rounds) throw config::InputError("the server fails before a round can end: no round ever counts");
      progress_(static_cast<double>(done) / static_cast<double>(rounds));
    }
    return history_;
  }

 private:
  [[nodiscard]] double uniform(std::uint64_t draw, std::size_t device, std::uint64_t round) const {
    const Device& which = job_.devices[device];
    return field_random(job_.settings.seed ^ (round * 0x9e3779b97f4a7c15U), (static_cast<std::uint64_t>(which.entry) << 32U) + which.number,
                        draw)
        .uniform();
  }
  double time_to_failure_s() {
    const double mtbf_s = job_.settings.server_failures.mtbf_s;
    return mtbf_s > 0 ? -mtbf_s * std::log(server_.uniform()) : never;
  }

  // The devices of a round, in the order of the job.
  [[nodiscard]] std::vector<std::size_t> selected(std::uint64_t round) const {
    std::vector<std::size_t> all(job_.devices.size());
    std::iota(all.begin(), all.end(), 0);
    const Selection& select = job_.settings.select;
    if (select.devices == 0) return all;
    const double wanted = std::ceil(static_cast<double>(select.devices) * select.over);
    const std::size_t count = std::min(all.size(), static_cast<std::size_t>(wanted));
    std::vector<std::pair<double, std::size_t>> draws;
    for (const std::size_t n : all) draws.emplace_back(uniform(selection, n, round), n);
    std::ranges::sort(draws);
    all.clear();
    for (std::size_t i = 0; i < count; ++i) all.push_back(draws[i].second);
    std::ranges::sort(all);
    return all;
  }

  // Block fading: the gain of a device and direction is exponential with mean 1 for a whole round.
  static void fade(double& bytes_per_s, double& signal_hz, double band_hz, double uniform) {
    signal_hz *= -std::log(uniform);
    bytes_per_s = rate_bytes_per_s(band_hz, signal_hz);
  }

  [[nodiscard]] Job job_of(const std::vector<std::size_t>& devices, std::uint64_t round) const {
    Job now = job_;
    now.devices.clear();
    now.available.clear();
    now.given_cuts.clear();
    for (const std::size_t n : devices) {
      now.devices.push_back(job_.devices[n]);
      if (job_.rates) job_.rates->apply(n, history_.training_s, now.devices.back());
      now.available.push_back(job_.available[n]);
      if (!job_.given_cuts.empty()) now.given_cuts.push_back(job_.given_cuts[n]);
      if (job_.settings.radio.fading == Fading::none || job_.settings.entries[job_.devices[n].entry].dedicated) continue;
      Device& device = now.devices.back();
      const Radio& radio = job_.settings.radio;
      fade(device.uplink_bytes_per_s, device.uplink_signal_hz, radio.band_hz, uniform(uplink_gain, n, round));
      fade(device.downlink_bytes_per_s, device.downlink_signal_hz, job_.one_band() ? radio.band_hz : radio.downlink_hz(),
           uniform(downlink_gain, n, round));
    }
    return now;
  }

  // The plan of all, for those selected: their cuts, and their shares of what those selected have.
  [[nodiscard]] Plan part_of_plan(const Job& now, const std::vector<std::size_t>& devices) const {
    LinkShares sum;
    CutChoice cuts;
    std::vector<LinkShares> shares;
    for (const std::size_t n : devices) {
      cuts.push_back(plan_.cuts[n]);
      shares.push_back(plan_.share[n]);
      sum.uplink += plan_.share[n].uplink;
      sum.downlink += plan_.share[n].downlink;
      sum.server += plan_.share[n].server;
    }
    if (now.settings.server.mode == ServerMode::batched) return batched_plan(now, cuts.front());
    if (devices.size() == plan_.cuts.size()) return plan_with_shares(now, cuts, shares);
    const double band = sum.uplink + sum.downlink;
    for (LinkShares& share : shares) {
      share.uplink /= job_.one_band() ? band : std::max(sum.uplink, 1e-300);
      share.downlink /= job_.one_band() ? band : std::max(sum.downlink, 1e-300);
      share.server /= std::max(sum.server, 1e-300);
    }
    return plan_with_shares(now, cuts, std::move(shares));
  }

  struct Played {
    SimulatedRound round;
    double negotiation_s = 0;
    double joules = 0;
  };

  Played play(std::uint64_t number) const {
    const std::vector<std::size_t> devices = selected(number);
    const Job now = job_of(devices, number);
    const bool retuned = job_.settings.retune == Retune::every_round && rounds_differ(job_);
    const Plan plan = retuned ? make_plan(now) : part_of_plan(now, devices);
    Played played;
    if (retuned && now.settings.server.mode == ServerMode::per_device && !now.total_power())
      played.negotiation_s = negotiation_s(now, negotiate(chosen_of(now, plan)));
    played.round = simulate_round(now, plan, conditions_for(devices, plan, number));
    for (std::size_t n = 0; n < devices.size(); ++n) played.joules += joules(now, plan, n, played.round.result.devices[n]).value_or(0);
    return played;
  }
  static std::vector<Option> chosen_of(const Job& now, const Plan& plan) { return options_of(now, plan.cuts); }

  [[nodiscard]] Conditions conditions_for(const std::vector<std::size_t>& devices, const Plan& plan, std::uint64_t number) const {
    Conditions out;
    out.deadline_s = conditions_.deadline_s;
    out.server_fails_at_s = conditions_.server_fails_at_s;
    if (job_.settings.select.devices > 0) out.enough = static_cast<std::size_t>(job_.settings.select.devices);
    out.leaves_at_s.assign(devices.size(), never);
    for (std::size_t i = 0; i < devices.size(); ++i) {
      const std::size_t n = devices[i];
      if (uniform(leaves, n, number) < job_.settings.dropout) out.leaves_at_s[i] = uniform(leaves_at, n, number) * plan.latency_s[i];
      if (!conditions_.leaves_at_s.empty()) out.leaves_at_s[i] = std::min(out.leaves_at_s[i], conditions_.leaves_at_s[n]);
    }
    for (SlowSpell spell : conditions_.slow) {
      const auto found = std::ranges::find(devices, spell.device);
      if (spell.what == SlowSpell::What::device && found == devices.end()) continue;
      if (spell.what == SlowSpell::What::device) spell.device = static_cast<std::size_t>(found - devices.begin());
      out.slow.push_back(spell);
    }
    return out;
  }

  RoundRow round(std::uint64_t number) {
    if (rounds_differ(job_) || !last_) last_ = play(number);
    const RoundResult& result = last_->round.result;
    RoundRow row{.begins_s = history_.training_s, .negotiation_s = last_->negotiation_s, .selected = result.devices.size()};
    row.round_s = result.round_s + row.negotiation_s;
    row.lost = last_->round.lost;
    if (row.begins_s + row.round_s > next_failure_s_) fail(row);
    for (const DeviceRound& device : result.devices) count(device, result, row);
    if (!row.lost) history_.joules += last_->joules;
    return row;
  }

  // What the server holds of the round is gone; it is done again once the server is back.
  void fail(RoundRow& row) {
    row.lost = true;
    ++history_.failures;
    row.round_s = std::max(0.0, next_failure_s_ - row.begins_s);
    row.repair_s = job_.settings.server_failures.repair_s;
    next_failure_s_ = row.begins_s + row.round_s + row.repair_s + time_to_failure_s();
  }

  static void count(const DeviceRound& device, const RoundResult& result, RoundRow& row) {
    row.finished += device.fate == Fate::finished ? 1 : 0;
    row.dropped += device.fate == Fate::dropped ? 1 : 0;
    row.late += device.fate == Fate::late ? 1 : 0;
    const double part = row.lost && result.round_s > 0 ? std::min(1.0, row.round_s / result.round_s) : 1;
    const double worked_s = part * (device.phases.sum() - device.phases[Phase::waiting] - device.phases[Phase::aggregation]);
    row.worked_s += worked_s;
    if (row.lost || device.fate != Fate::finished) row.wasted_s += worked_s;
  }

  const Job& job_;
  const std::function<void(double)>& progress_;
  Plan plan_;
  config::Random server_;
  Conditions conditions_;
  double next_failure_s_ = never;
  std::optional<Played> last_;
  RunHistory history_;
};

}  // namespace

double RunHistory::useful_share() const {
  double worked_s = 0, wasted_s = 0;
  for (const RoundRow& row : rounds) {
    worked_s += row.worked_s;
    wasted_s += row.wasted_s;
  }
  return worked_s > 0 ? 1 - wasted_s / worked_s : 0;
}

bool rounds_differ(const Job& job) {
  const Settings& settings = job.settings;
  return settings.select.devices > 0 || settings.dropout > 0 || settings.radio.fading != Fading::none || job.rates;
}

RunHistory run_rounds(const Job& job, const std::function<void(double)>& progress) { return Run(job, progress).run(); }

}  // namespace rehearse::federated
