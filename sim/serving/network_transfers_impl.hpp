// What NetworkTransfers knows of the links between pools.
#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "sim/serving/network_transfers.hpp"
#include "sim/serving/placement.hpp"
#include "topology/fabric.hpp"

namespace rehearse::sim {

struct NetworkTransfers::Impl {
  using Fabric = topology::Fabric;
  using LinkId = topology::LinkId;
  const ServingJob& job;
  Fabrics fabrics;                            // by part
  std::vector<std::vector<int>> places;       // [pool][instance] its first GPU in its part
  std::size_t senders = 0;                    // pools that compute prompts; the others decode
  std::vector<TransferLane> lanes;            // [sender * receivers + receiver]
  std::vector<std::vector<LinkIndex>> links;  // [part][fabric link]
  using Parts = std::pair<std::size_t, std::size_t>;
  struct Crossing {
    LinkIndex link = 0;
    double bytes_per_s = 0;
  };
  std::map<Parts, Crossing> between;  // where caches cross from part to part
  // Of parts in which links are gone: the others, and those that are gone; [part], empty where all are there.
  std::vector<std::optional<Fabric>> left;
  std::vector<std::vector<LinkId>> gone;
  // Of a lane, from one instance to another: [pair] links by their places in `loads` with seconds of a byte.
  struct Ways {
    std::vector<std::vector<std::pair<std::size_t, double>>> of_pair;
    double latency_s = 0;
  };
  struct LaneWays {
    std::vector<Ways> between;  // instances, and their attention replicas in turn; of many the first ones
    std::size_t sources = 1, targets = 1;
    double senders = 1, receivers = 1;  // of the replicas of each side, those that are looked at
    // Of a link that so many of the instances on each side load that are looked at: what is one side's own is so many times as busy as all
    // of that side would make it.
    [[nodiscard]] double share(std::size_t loading, std::size_t loaded) const {
      const bool of_all = loading >= sources, to_all = loaded >= targets;
      return of_all == to_all ? std::max(senders, receivers) : of_all ? receivers : senders;
    }
    double all_sources = 1;  // with those that are not looked at
    std::map<std::pair<std::size_t, LinkId>, std::size_t> known;
    mutable std::vector<double> loads;
  };
  std::vector<LaneWays> lane_ways;

  explicit Impl(const ServingJob& serving) : job(serving), places(places_of(serving)) {}
  [[nodiscard]] const TransferLane& lane(std::size_t sender, std::size_t receiver) const {
    return lanes[sender * (job.pools.size() - senders) + receiver];
  }

  [[nodiscard]] static Fabrics fabrics_of(const ServingJob& job);
  void plan();
  [[nodiscard]] LaneWays ways_of(const TransferLane& lane) const;
  [[nodiscard]] Ways ways_between(const TransferLane& lane, std::size_t source, std::size_t target, std::size_t request,
                                  LaneWays& all) const;
  double load(const LaneWays& all, const Ways& ways, const TransferLane& lane, const CacheFront& sent, const CacheFront& ready) const;
  // Of the instances of this pool and those behind it, the pool and the place in it.
  [[nodiscard]] std::pair<std::size_t, std::size_t> place_in(std::size_t first_pool, std::size_t instance) const;
  [[nodiscard]] std::pair<std::size_t, LinkId> crossing_link() const { return {job.parts.size(), 0}; }  // between the parts
  using Links = std::vector<std::pair<std::size_t, LinkId>>;
  [[nodiscard]] Links way(const TransferLane& lane, int from, int to, double& latency_s) const;
  [[nodiscard]] Links way_out(std::size_t part, int gpu, bool out, double& latency_s) const;
  [[nodiscard]] static Links way_out_in(const Fabric& fabric, std::size_t part, int gpu, bool out, double& latency_s);
  [[nodiscard]] topology::Route route(std::size_t part, int from, int to) const;
  [[nodiscard]] bool is_gone(const Links& links) const;
  [[nodiscard]] double between_bytes_per_s(const Parts& parts) const;
  [[nodiscard]] double rate(const std::pair<std::size_t, LinkId>& link) const {
    return fabrics[link.first]->links()[link.second].bandwidth_bytes_per_s;
  }
  [[nodiscard]] int rank_gpu(std::size_t pool, std::size_t instance, std::size_t request, int rank) const;
};

}  // namespace rehearse::sim
