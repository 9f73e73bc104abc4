#include "sim/federated/total_power.hpp"

#include <algorithm>
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

double ratio_of(const Job& job, const Device& device) { return device.uplink_signal_hz / job.settings.radio.band_hz; }

// The share of the band with which the uplink leaves some of `left_s`: twice the least one is a start from which Newton's method goes on.
double least_share(const PowerOption& option, double left_s) {
  double low = 0, high = 1;
  while (option.uplink_s / option.rate.part(high) >= left_s && high < 1e12) high *= 2;
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2;
    option.uplink_s / option.rate.part(middle) < left_s ? high = middle : low = middle;
  }
  return high;
}

// At these prices and with so much time: cost p_x x + K / (left - uplink(x)) is convex in x, K = (sqrt(p_y) down + sqrt(p_z) server)^2.
PowerDemand cheapest(const PowerOption& option, double left_s, const PerResource& prices) {
  if (left_s <= 0) return {};
  const double root = std::sqrt(prices[1]) * option.down + std::sqrt(prices[2]) * option.server;
  const double rest = root * root;
  double low = least_share(option, left_s), high = low;
  const auto spare_s = [&](double x) { return left_s - option.uplink_s / option.rate.part(x); };
  const auto climbs = [&](double x) {  // sign of the cost's derivative
    const double part = option.rate.part(x), spare = spare_s(x);
    if (spare <= 0) return false;
    return prices[0] * spare * spare >= rest * option.uplink_s * option.rate.slope(x) / (part * part);
  };
  while (!climbs(high) && high < 1e12) high *= 2;
  for (int i = 0; i < 100 && high - low > 1e-16 * high; ++i) {
    const double middle = (low + high) / 2;
    climbs(middle) ? high = middle : low = middle;
  }
  const double spare = spare_s(high);
  PowerDemand out{.cost = prices[0] * high + rest / spare, .slope = rest / (spare * spare), .amount = {high, 0, 0}};
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
  for (int i = 0; i < 100 && high_s - low_s > 1e-14 * high_s; ++i) {
    const Total total = total_at(devices, at_s, prices);
    (total.cost >= 1 ? low_s : high_s) = at_s;
    const double newton_s = std::isfinite(total.cost) ? at_s + total.cost * (total.cost - 1) / total.slope : low_s;
    at_s = newton_s > low_s && newton_s < high_s && i % 4 != 3 ? newton_s : (low_s + high_s) / 2;
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
  constexpr double narrow = 1e-11;
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
