// Who cuts where and gets what: the cuts and shares that a job asks for, tuned, given or by rule.
#pragma once

#include "sim/federated/cuts.hpp"
#include "sim/federated/job.hpp"

namespace rehearse::federated {

struct LinkShares {
  double uplink = 0, downlink = 0, server = 0;
};

struct Plan {
  CutChoice cuts;                 // [device]
  std::vector<LinkShares> share;  // [device]
  std::vector<double> latency_s;  // [device] by (5)
  double round_s = 0;             // the largest; without aggregation
  double sum_s = 0;
  double any_schedule_s = 0;  // (14) of these cuts
  // Of tuned cuts and shares; of others 0, and not proven.
  double bound_s = 0;
  bool proven = false;
  LinkShares prices;               // with one band: the uplink's, of both directions
  LinkShares seconds_per_percent;  // what 1 % more of it saves
  std::vector<double> blame;       // [device]
  int solves = 0;
  std::uint64_t nodes = 0;

  [[nodiscard]] bool tuned() const { return bound_s > 0; }
  [[nodiscard]] double gap() const { return round_s > bound_s && bound_s > 0 ? (round_s - bound_s) / round_s : 0; }
};

// As the job's keys say.
[[nodiscard]] Plan make_plan(const Job& job, const CutSearch& search = {});

// Parts of it, for what else asks for them.
[[nodiscard]] Plan tuned_plan(const Job& job, const CutSearch& search = {});
[[nodiscard]] Plan plan_with_tuned_shares(const Job& job, const CutChoice& cuts);
[[nodiscard]] Plan plan_with_shares(const Job& job, const CutChoice& cuts, std::vector<LinkShares> share);
[[nodiscard]] std::vector<LinkShares> equal_shares(const Job& job, const CutChoice& cuts);
// What one resource of the problem is in links: with one band the uplink's and downlink's parts of a device's share.
[[nodiscard]] std::vector<LinkShares> link_shares(const Job& job, const CutChoice& cuts, std::span<const PerResource> share);
// Each device's fastest cut with these shares of every resource.
[[nodiscard]] CutChoice own_best_cuts(const Job& job, double share);

// A device that has everything to itself. With one band it has all of it for either direction in turn, which no fixed shares give.
[[nodiscard]] double alone_s(const Job& job, std::size_t device, std::size_t cut);
// (14): no schedule of these cuts is faster. With total power parts of a band carry more than their part: the uplink says nothing then.
[[nodiscard]] double any_schedule_s(const Job& job, const CutChoice& cuts);

// (5) of one device.
[[nodiscard]] double latency_s(const Job& job, std::size_t device, std::size_t cut, const LinkShares& share);

}  // namespace rehearse::federated
