#include "sim/federated/shares.hpp"

#include <algorithm>
#include <cmath>
#include <optional>

#include "sim/federated/load_matrix.hpp"

namespace rehearse::federated {
namespace {

using Group = std::uint32_t;  // a set of resources, one bit each

Group used_by(const Option& option) {
  Group used = 0;
  for (int i = 0; i < max_resources; ++i) used |= option.root[i] > 0 ? 1U << i : 0U;
  return used;
}

// Resources that some device joins, directly or over others: what concerns one group does not touch another.
std::vector<Group> groups_of(std::span<const Option> chosen) {
  std::vector<Group> groups;
  for (const Option& option : chosen) {
    Group joined = used_by(option);
    if (joined == 0) continue;
    const auto apart = [&](Group group) {
      if ((group & joined) == 0) return false;
      joined |= group;
      return true;
    };
    while (std::erase_if(groups, apart) > 0) {
    }
    groups.push_back(joined);
  }
  std::ranges::sort(groups);
  return groups;
}

// The devices of one group, with T written as latest + tau: T - alpha = tau + gap has no cancellation where one device is far behind.
struct Climb {
  std::span<const Option> chosen;
  Group group = 0;
  double latest_s = 0;  // the largest alpha
  double tau_s = 0;
  Perron perron = {};
  double slope = 0;
  int steps = 0;

  [[nodiscard]] bool concerns(const Option& option) const { return (used_by(option) & group) != 0; }
  [[nodiscard]] double left_s(const Option& option) const { return tau_s + (latest_s - option.alpha_s); }
  [[nodiscard]] double round_s() const { return latest_s + tau_s; }

  void start();
  void look();
  void climb(double known_s);
  [[nodiscard]] double next_tau_s() const { return tau_s + perron.radius * (perron.radius - 1) / slope; }
};

// A device alone or a resource that is never idle: not later than T*.
void Climb::start() {
  latest_s = -1;
  for (const Option& option : chosen) {
    if (concerns(option)) latest_s = std::max(latest_s, option.alpha_s);
  }
  PerResource busy_s{};
  for (const Option& option : chosen) {
    if (!concerns(option)) continue;
    tau_s = std::max(tau_s, dot(option.root, option.root) - (latest_s - option.alpha_s));
    for (int i = 0; i < max_resources; ++i) busy_s[i] += option.root[i] * option.root[i];
  }
  tau_s = std::max(tau_s, *std::ranges::max_element(busy_s) - latest_s);
}

void Climb::look() {
  LoadMatrix load;
  for (const Option& option : chosen) {
    if (concerns(option)) load.add(option.root, 1 / left_s(option));
  }
  perron = federated::perron(load);
  slope = 0;
  for (const Option& option : chosen) {
    if (!concerns(option)) continue;
    const double demand = dot(option.root, perron.vector) / left_s(option);
    slope += demand * demand;
  }
}

void Climb::climb(double known_s) {
  constexpr int most_steps = 200;  // 1 to 10 are seen
  start();
  const double least_tau_s = tau_s;
  if (known_s > round_s() && std::isfinite(known_s)) {
    tau_s = known_s - latest_s;
    look();
    if (perron.radius >= 1) return;
    tau_s = std::max(least_tau_s, next_tau_s());  // the tangent of a concave function: from above, too, it leads below T*
  }
  for (look(); steps < most_steps; ++steps) {
    const double next_s = next_tau_s();
    if (!(next_s > tau_s * (1 + 1e-16))) break;
    tau_s = next_s;
    look();
  }
}

Climb climb(std::span<const Option> chosen, Group group, double known_s = std::numeric_limits<double>::infinity()) {
  Climb climb{.chosen = chosen, .group = group};
  climb.climb(known_s);
  return climb;
}

double latest_alpha_s(std::span<const Option> chosen) {
  double latest_s = 0;
  for (const Option& option : chosen) latest_s = std::max(latest_s, option.alpha_s);
  return latest_s;
}

// (13), of the devices of one group.
void share_out(const Climb& group, Shares& out) {
  PerResource total{};
  for (std::size_t n = 0; n < group.chosen.size(); ++n) {
    const Option& option = group.chosen[n];
    if (!group.concerns(option)) continue;
    const double demand = dot(option.root, group.perron.vector) / group.left_s(option);
    for (int i = 0; i < max_resources; ++i) {
      if (option.root[i] > 0) out.share[n][i] = option.root[i] * demand / group.perron.vector[i];
      total[i] += out.share[n][i];
    }
  }
  for (std::size_t n = 0; n < group.chosen.size(); ++n) {  // rounding may leave a sum above 1 by its last digits
    if (!group.concerns(group.chosen[n])) continue;
    for (int i = 0; i < max_resources; ++i) out.share[n][i] /= std::max(1.0, total[i]);
  }
}

void find_blame(const Climb& group, Shares& out) {
  double sum = 0;
  for (std::size_t n = 0; n < group.chosen.size(); ++n) {
    const Option& option = group.chosen[n];
    if (!group.concerns(option)) continue;
    const double demand = dot(option.root, group.perron.vector) / group.left_s(option);
    out.blame[n] = demand * demand;
    sum += out.blame[n];
  }
  for (double& mu : out.blame) mu /= sum;
  for (int i = 0; i < max_resources; ++i) {
    out.prices[i] = group.perron.vector[i] * group.perron.vector[i];
    out.seconds_per_log[i] = out.prices[i] / group.slope;
  }
}

}  // namespace

Deadline least_deadline(std::span<const Option> chosen, double known_s) {
  Deadline out{.round_s = latest_alpha_s(chosen)};
  for (const Group group : groups_of(chosen)) {
    const Climb found = climb(chosen, group, known_s);
    out.steps += found.steps;
    if (found.round_s() <= out.round_s) continue;
    out.round_s = found.round_s();
    out.root_price = found.perron.vector;
    out.slope = found.slope;
  }
  return out;
}

Shares exact_shares(std::span<const Option> chosen) {
  Shares out;
  out.round_s = latest_alpha_s(chosen);
  out.share.resize(chosen.size());
  out.blame.resize(chosen.size());
  std::optional<Climb> decides;
  for (const Group group : groups_of(chosen)) {
    const Climb found = climb(chosen, group);
    out.steps += found.steps;
    share_out(found, out);
    if (found.round_s() <= out.round_s) continue;
    out.round_s = found.round_s();
    decides = found;
  }
  if (decides) {
    find_blame(*decides, out);
  } else if (!chosen.empty()) {
    const auto latest = std::ranges::max_element(chosen, {}, &Option::alpha_s);
    out.blame[static_cast<std::size_t>(latest - chosen.begin())] = 1;
  }
  for (std::size_t n = 0; n < chosen.size(); ++n) out.latency_s.push_back(latency_s(chosen[n], out.share[n]));
  out.certificate_s = dual_bound_s(chosen, out.blame);
  return out;
}

double dual_bound_s(std::span<const Option> chosen, std::span<const double> mu) {
  double own_s = 0;
  PerResource roots{};
  for (std::size_t n = 0; n < chosen.size(); ++n) {
    own_s += mu[n] * chosen[n].alpha_s;
    for (int i = 0; i < max_resources; ++i) roots[i] += std::sqrt(mu[n]) * chosen[n].root[i];
  }
  return own_s + dot(roots, roots);
}

double latency_s(const Option& option, const PerResource& share) {
  double latency_s = option.alpha_s;
  for (int i = 0; i < max_resources; ++i) {
    if (option.root[i] > 0) latency_s += option.root[i] * option.root[i] / share[i];
  }
  return latency_s;
}

double any_schedule_s(std::span<const Option> chosen) {
  PerResource busy_s{};
  double alone_s = 0;
  for (const Option& option : chosen) {
    alone_s = std::max(alone_s, option.alone_s());
    for (int i = 0; i < max_resources; ++i) busy_s[i] += option.root[i] * option.root[i];
  }
  return std::max(alone_s, *std::ranges::max_element(busy_s));
}

}  // namespace rehearse::federated
