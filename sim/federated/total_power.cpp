#include "sim/federated/total_power.hpp"

#include <algorithm>
#include <boost/math/tools/toms748_solve.hpp>
#include <cmath>
#include <limits>

#include "sim/federated/price_polygon.hpp"

namespace rehearse::federated {
namespace {

// Rate of a share of the band over that of the whole band; `ratio`: signal to noise over the whole band.
struct Rate {
  double ratio = 0;
  [[nodiscard]] double part(double share) const { return share * std::log1p(ratio / share) / std::log1p(ratio); }
  [[nodiscard]] double slope(double share) const { return (std::log1p(ratio / share) - ratio / (share + ratio)) / std::log1p(ratio); }
};

struct PowerOption {
  double alpha_s = 0, uplink_s = 0;  // the uplink's with the whole band
  double down = 0, server = 0;       // roots
  Rate rate;
};

struct PowerDemand {
  double cost = std::numeric_limits<double>::infinity(), slope = 0;
  PerResource amount{};
};

constexpr double widest_band = 1e12;  // bands: prices that ask for more are none

double ratio_of(const Job& job, const Device& device) { return device.uplink_signal_hz / job.settings.radio.band_hz; }

// Where a function that climbs from below 0 at `low` to above 0 at `high` is 0, from the side where it is not below 0.
template <class Function>
double root_between(const Function& climbs, double low, double high) {
  std::uintmax_t most_steps = 100;  // 10 are usual
  const auto [left, right] =
      boost::math::tools::toms748_solve(climbs, low, high, boost::math::tools::eps_tolerance<double>(50), most_steps);
  static_cast<void>(left);
  return right;
}

// The least share of the band with which the uplink leaves some of `left_s`; 0: more than can be.
double least_share(const PowerOption& option, double left_s) {
  const auto missing = [&](double x) { return option.rate.part(x) - option.uplink_s / left_s; };
  double high = 1;
  while (missing(high) <= 0 && high < widest_band) high *= 2;
  if (missing(high) <= 0) return 0;
  return root_between(missing, high * 1e-18, high);
}

// At these prices and with so much time: cost p_x x + K / (left - uplink(x)) is convex in x, K = (sqrt(p_y) down + sqrt(p_z) server)^2.
PowerDemand cheapest(const PowerOption& option, double left_s, const PerResource& prices) {
  if (left_s <= 0) return {};
  const double root = std::sqrt(prices[1]) * option.down + std::sqrt(prices[2]) * option.server;
  const double rest = root * root;
  const double least = option.uplink_s > 0 ? least_share(option, left_s) : 0;
  if (least == 0 && option.uplink_s > 0) return {};
  const auto spare_s = [&](double x) { return option.uplink_s > 0 ? left_s - option.uplink_s / option.rate.part(x) : left_s; };
  const auto climbs = [&](double x) {  // the cost's derivative, times something positive
    const double part = option.rate.part(x), spare = std::max(0.0, spare_s(x));
    return prices[0] * spare * spare - rest * option.uplink_s * option.rate.slope(x) / (part * part);
  };
  double high = least;
  if (least > 0 && climbs(least) < 0) {
    while (climbs(high) < 0 && high < widest_band) high *= 2;
    if (climbs(high) < 0) return {};
    high = root_between(climbs, least, high);
  }
  const double spare = spare_s(high);
  PowerDemand out{.cost = prices[0] * high, .slope = 0, .amount = {high, 0, 0}};
  if (rest == 0) return out;
  out.cost += rest / spare;
  out.slope = rest / (spare * spare);
  if (option.down > 0) out.amount[1] = option.down * root / (std::sqrt(prices[1]) * spare);
  if (option.server > 0) out.amount[2] = option.server * root / (std::sqrt(prices[2]) * spare);
  return out;
}

using DeviceOptions = std::vector<std::vector<PowerOption>>;  // [device][option]

struct Total {
  double cost = 0, slope = 0;
  PerResource amount{};
  std::vector<std::uint16_t> option;  // [device]
  std::vector<PerResource> demand;    // [device]
};

Total total_at(const DeviceOptions& devices, double deadline_s, const PerResource& prices) {
  Total total;
  for (const std::vector<PowerOption>& options : devices) {
    PowerDemand best;
    std::uint16_t which = 0;
    for (std::uint16_t c = 0; c < options.size(); ++c) {
      const PowerDemand demand = cheapest(options[c], deadline_s - options[c].alpha_s, prices);
      if (demand.cost >= best.cost) continue;
      best = demand;
      which = c;
    }
    total.cost += best.cost;
    total.slope += best.slope;
    total.option.push_back(which);
    total.demand.push_back(best.amount);
    for (int i = 0; i < max_resources; ++i) total.amount[i] += best.amount[i];
  }
  return total;
}

// The deadline at which the cheapest demands cost 1: no shares (and, with cuts free, no cuts) meet an earlier one.
double deadline_at(const DeviceOptions& devices, const PerResource& prices, double low_s, double high_s) {
  double at_s = high_s;
  constexpr int most_steps = 100;  // 6 are usual
  for (int i = 0; i < most_steps && high_s - low_s > 1e-13 * high_s; ++i) {
    const Total total = total_at(devices, at_s, prices);
    (total.cost >= 1 ? low_s : high_s) = at_s;
    const double newton_s = std::isfinite(total.cost) ? at_s + total.cost * (total.cost - 1) / total.slope : low_s;
    if (total.cost >= 1 && newton_s - at_s <= 1e-13 * at_s) break;
    at_s = newton_s > low_s && newton_s < high_s ? newton_s : (low_s + high_s) / 2;
  }
  return low_s;
}

double slowest_alone_s(const DeviceOptions& devices) {
  double slowest_s = 0;
  for (const std::vector<PowerOption>& options : devices) {
    const auto alone = [](const PowerOption& o) { return o.alpha_s + o.uplink_s + o.down * o.down + o.server * o.server; };
    slowest_s = std::max(slowest_s, alone(*std::ranges::min_element(options, {}, alone)));
  }
  return slowest_s;
}

struct Found {
  double bound_s = 0;
  PerResource prices{};
  Total total;
};

Found best_prices(const DeviceOptions& devices) {
  double everyone_s = 0;  // one device after another
  for (const std::vector<PowerOption>& options : devices) everyone_s += slowest_alone_s({options});
  Found found{.bound_s = slowest_alone_s(devices) * (1 - 1e-15), .prices = {}, .total = {}};
  PricePolygon polygon({0, 1, 2});
  constexpr int most_cuts = 90;
  constexpr double narrow = 1e-9;  // near the best prices the bound is flat
  for (int i = 0; i < most_cuts && polygon.extent() > narrow; ++i) {
    const PerResource prices = polygon.centre();
    const double deadline_s = deadline_at(devices, prices, found.bound_s, everyone_s * (1 + 1e-12));
    const Total total = total_at(devices, std::max(deadline_s, found.bound_s * (1 + 1e-15)), prices);
    if (deadline_s > found.bound_s || found.total.option.empty()) found = {std::max(deadline_s, found.bound_s), prices, total};
    polygon.keep_above(prices, total.amount);
  }
  return found;
}

PowerOption power_option(const Job& job, std::size_t device, std::size_t cut) {
  const Device& which = job.devices[device];
  const RoundLoad load = load_of(job, which, cut);
  return {.alpha_s = load.forward_s + load.backward_s + load.latency_s,
          .uplink_s = load.uplink_s + load.model_up_s,
          .down = std::sqrt(load.downlink_s + load.model_down_s),
          .server = std::sqrt(load.server_s),
          .rate = {ratio_of(job, which)}};
}

Plan plan_of(const Found& found, CutChoice cuts) {
  Plan plan;
  plan.cuts = std::move(cuts);
  plan.bound_s = found.bound_s;
  for (const PerResource& demand : found.total.demand) {
    PerResource share{};
    for (int i = 0; i < max_resources; ++i) share[i] = found.total.amount[i] > 0 ? demand[i] / found.total.amount[i] : 0;
    plan.share.push_back({share[0], share[1], share[2]});
  }
  plan.prices = {found.prices[0], found.prices[1], found.prices[2]};
  return plan;
}

}  // namespace

double uplink_part(const Job& job, const Device& device, double share) {
  return job.total_power() && share > 0 ? Rate{ratio_of(job, device)}.part(share) : share;
}

Plan total_power_plan(const Job& job, const CutChoice& cuts) {
  DeviceOptions devices;
  for (std::size_t n = 0; n < cuts.size(); ++n) devices.push_back({power_option(job, n, cuts[n])});
  return plan_of(best_prices(devices), cuts);
}

Plan tuned_total_power_plan(const Job& job) {
  DeviceOptions devices(job.devices.size());
  for (std::size_t n = 0; n < devices.size(); ++n) {
    for (const std::uint16_t cut : job.available[n]) devices[n].push_back(power_option(job, n, cut));
  }
  const Found free_cuts = best_prices(devices);
  CutChoice cuts;
  for (std::size_t n = 0; n < devices.size(); ++n) cuts.push_back(job.available[n][free_cuts.total.option[n]]);
  Plan plan = total_power_plan(job, cuts);
  plan.proven = plan.bound_s <= free_cuts.bound_s * (1 + 1e-9);
  plan.bound_s = free_cuts.bound_s;
  return plan;
}

}  // namespace rehearse::federated
