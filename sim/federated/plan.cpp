#include "sim/federated/plan.hpp"

#include <algorithm>
#include <cmath>

#include "sim/federated/batched.hpp"
#include "sim/federated/given_shares.hpp"
#include "sim/federated/sum_cuts.hpp"
#include "sim/federated/total_power.hpp"

namespace rehearse::federated {
namespace {

// Seconds of the resources to links: with one band both directions have what the band has.
LinkShares on_links(const Job& job, const PerResource& of) {
  return job.one_band() ? LinkShares{of[0], of[0], of[1]} : LinkShares{of[0], of[1], of[2]};
}

Plan finished(const Job& job, Plan plan) {
  plan.any_schedule_s = any_schedule_s(job, plan.cuts);
  for (std::size_t n = 0; n < plan.cuts.size(); ++n) {
    plan.latency_s.push_back(latency_s(job, n, plan.cuts[n], plan.share[n]));
    plan.round_s = std::max(plan.round_s, plan.latency_s.back());
    plan.sum_s += plan.latency_s.back();
  }
  return plan;
}

CutChoice random_cuts(const Job& job) {
  constexpr std::uint64_t field = 100;
  CutChoice cuts;
  for (std::size_t n = 0; n < job.devices.size(); ++n) {
    config::Random random = field_random(job.settings.seed, n, field);
    cuts.push_back(job.available[n][random.next() % job.available[n].size()]);
  }
  return cuts;
}

std::uint16_t cut_named(const Job& job, const std::string& name) {
  const auto found = std::ranges::find(job.cuts, name, &Cut::name);
  return static_cast<std::uint16_t>(found - job.cuts.begin());
}

CutChoice named_cuts(const Job& job) {
  const CutRule& rule = job.settings.cuts;
  if (rule.file) return job.given_cuts;
  if (rule.one_word() && rule.for_all == "random") return random_cuts(job);
  CutChoice cuts;
  for (const Device& device : job.devices) {
    cuts.push_back(cut_named(job, rule.by_entry.empty() ? rule.for_all : rule.by_entry.at(job.settings.entries[device.entry].name)));
  }
  return cuts;
}

std::vector<LinkShares> proportional_shares(const Job& job, const CutChoice& cuts) {
  const std::vector<Option> options = options_of(job, cuts);
  double total = 0;
  for (const Option& option : options) total += dot(option.root, option.root);
  std::vector<PerResource> share;
  for (const Option& option : options) {
    const double part = total > 0 ? dot(option.root, option.root) / total : 0;
    share.push_back({part, part, part});
  }
  return link_shares(job, cuts, share);
}

CutChoice alone_cuts(const Job& job) { return cut_choice(job, alone_best(problem_of(job))); }

Plan tuned_for_sum(const Job& job, const Problem& problem, const CutSearch& search) {
  const ChosenCuts found = choose_cuts_for_sum(problem, search);
  Plan plan;
  plan.cuts = cut_choice(job, found.cuts);
  plan.share = link_shares(job, plan.cuts, shares_of_least_sum(chosen(problem, found.cuts)));
  plan.bound_s = found.bound_s;
  plan.proven = found.proven;
  plan.solves = found.solves;
  plan.nodes = found.nodes;
  return finished(job, std::move(plan));
}

CutChoice given_or_best_cuts(const Job& job) {
  const Settings& settings = job.settings;
  if (!settings.cuts.tuned()) return named_cuts(job);
  if (settings.shares.word == "equal") return own_best_cuts(job, 1 / static_cast<double>(job.devices.size()));
  return alone_cuts(job);
}

}  // namespace

double alone_s(const Job& job, std::size_t device, std::size_t cut) {
  const RoundLoad load = load_of(job, job.devices[device], cut);
  return load.forward_s + load.backward_s + load.latency_s + load.uplink_s + load.model_up_s + load.server_s + load.downlink_s +
         load.model_down_s;
}

double any_schedule_s(const Job& job, const CutChoice& cuts) {
  double slowest_s = 0, up_s = 0, down_s = 0, server_s = 0, broadcast_s = 0;
  for (std::size_t n = 0; n < cuts.size(); ++n) {
    const RoundLoad load = load_of(job, job.devices[n], cuts[n]);
    slowest_s = std::max(slowest_s, alone_s(job, n, cuts[n]));
    server_s += load.server_s;
    if (job.settings.entries[job.devices[n].entry].dedicated) continue;
    up_s += load.uplink_s + load.model_up_s;
    down_s += load.model_down_s + (job.settings.broadcast ? 0 : load.downlink_s);
    if (job.settings.broadcast) broadcast_s = std::max(broadcast_s, load.downlink_s);
  }
  down_s += broadcast_s;
  if (job.total_power()) up_s = 0;
  const double media_s = job.one_band() ? up_s + down_s : std::max(up_s, down_s);
  return std::max({slowest_s, media_s, server_s});
}

double latency_s(const Job& job, std::size_t device, std::size_t cut, const LinkShares& share) {
  const Device& which = job.devices[device];
  const RoundLoad load = load_of(job, which, cut);
  const bool dedicated = job.settings.entries[which.entry].dedicated;
  const auto over = [](double seconds, double part) { return seconds > 0 ? seconds / part : 0; };
  const double up_s = load.uplink_s + load.model_up_s, down_s = load.downlink_s + load.model_down_s;
  return load.forward_s + load.backward_s + load.latency_s + over(load.server_s, share.server) +
         (dedicated ? up_s + down_s : over(up_s, uplink_part(job, which, share.uplink)) + over(down_s, share.downlink));
}

std::vector<LinkShares> link_shares(const Job& job, const CutChoice& cuts, std::span<const PerResource> share) {
  std::vector<LinkShares> out;
  for (std::size_t n = 0; n < share.size(); ++n) {
    if (!job.one_band()) {
      out.push_back({share[n][0], share[n][1], share[n][2]});
      continue;
    }
    const RoundLoad load = load_of(job, job.devices[n], cuts[n]);
    const double up = std::sqrt(load.uplink_s + load.model_up_s), down = std::sqrt(load.downlink_s + load.model_down_s);
    out.push_back({share[n][0] * up / (up + down), share[n][0] * down / (up + down), share[n][1]});
  }
  return out;
}

std::vector<LinkShares> equal_shares(const Job& job, const CutChoice& cuts) {
  const double part = 1 / static_cast<double>(cuts.size());
  return link_shares(job, cuts, std::vector<PerResource>(cuts.size(), {part, part, part}));
}

CutChoice own_best_cuts(const Job& job, double share) {
  CutChoice cuts;
  for (std::size_t n = 0; n < job.devices.size(); ++n) {
    const auto latency = [&](std::uint16_t cut) {
      const CutChoice one{cut};
      const Option option = option_of(job, job.devices[n], load_of(job, job.devices[n], cut));
      return option.alpha_s + dot(option.root, option.root) / share;
    };
    cuts.push_back(*std::ranges::min_element(job.available[n], {}, latency));
  }
  return cuts;
}

Plan plan_with_shares(const Job& job, const CutChoice& cuts, std::vector<LinkShares> share) {
  Plan plan;
  plan.cuts = cuts;
  plan.share = std::move(share);
  return finished(job, std::move(plan));
}

Plan plan_with_tuned_shares(const Job& job, const CutChoice& cuts) {
  if (job.total_power()) return finished(job, total_power_plan(job, cuts));
  const std::vector<Option> options = options_of(job, cuts);
  if (job.settings.objective == Objective::sum) return plan_with_shares(job, cuts, link_shares(job, cuts, shares_of_least_sum(options)));
  const Shares shares = exact_shares(options);
  Plan plan;
  plan.cuts = cuts;
  plan.share = link_shares(job, cuts, shares.share);
  plan.prices = on_links(job, shares.prices);
  constexpr double percent = 0.01;
  plan.seconds_per_percent = on_links(job, shares.seconds_per_log);
  for (double* seconds : {&plan.seconds_per_percent.uplink, &plan.seconds_per_percent.downlink, &plan.seconds_per_percent.server}) {
    *seconds *= percent;
  }
  plan.blame = shares.blame;
  return finished(job, std::move(plan));
}

Plan tuned_plan(const Job& job, const CutSearch& search) {
  if (job.total_power()) return finished(job, tuned_total_power_plan(job));
  const Problem problem = problem_of(job);
  if (job.settings.objective == Objective::sum) return tuned_for_sum(job, problem, search);
  const ChosenCuts found = choose_cuts(problem, search);
  Plan plan = plan_with_tuned_shares(job, cut_choice(job, found.cuts));
  plan.bound_s = found.bound_s;
  plan.proven = found.proven;
  plan.solves = found.solves;
  plan.nodes = found.nodes;
  return plan;
}

Plan make_plan(const Job& job, const CutSearch& search) {
  if (job.settings.server.mode == ServerMode::batched) return batched_plan(job);
  const ShareRule& rule = job.settings.shares;
  if (rule.word == "tuned") return job.settings.cuts.tuned() ? tuned_plan(job, search) : plan_with_tuned_shares(job, named_cuts(job));
  const CutChoice cuts = given_or_best_cuts(job);
  if (rule.word == "equal") return plan_with_shares(job, cuts, equal_shares(job, cuts));
  if (rule.word == "proportional") return plan_with_shares(job, cuts, proportional_shares(job, cuts));
  return plan_with_shares(job, cuts, read_shares(job, cuts));
}

}  // namespace rehearse::federated
