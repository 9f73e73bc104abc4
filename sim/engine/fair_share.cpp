#include "sim/engine/fair_share.hpp"

#include <algorithm>
#include <limits>

namespace rehearse::sim {

LinkIndex FairShare::add_link(double bytes_per_s) {
  links_.emplace_back().bytes_per_s = bytes_per_s;
  added_with_.push_back(bytes_per_s);
  return static_cast<LinkIndex>(links_.size() - 1);
}

void FairShare::divide(std::size_t lanes) {
  lanes_.resize(lanes);
  flows_.divide(lanes);
  for (std::size_t i = 0; i < lanes; ++i) lanes_[i].settling = lanes_[i].starting = i;
}

void FairShare::change(LinkIndex link, Lane& in) {
  if (links_[link].changed) return;
  links_[link].changed = true;
  in.changed.push_back(link);
}

void FairShare::set_bandwidth(LinkIndex link, double bytes_per_s, std::size_t in) {
  if (links_[link].bytes_per_s == bytes_per_s) return;
  links_[link].bytes_per_s = bytes_per_s;
  if (!links_[link].users.empty()) change(link, lanes_[in]);
}

FairShare::Flow FairShare::start(std::span<const LinkIndex> links, double weight, std::size_t in, std::size_t of) {
  const Flow flow = flows_.take(of);
  FlowState& started = flows_[flow];
  started.ways.clear();
  started.rate = 0;
  started.weight = weight;
  const std::uint64_t starting = lanes_[in].starting += lanes_.size();
  for (const LinkIndex index : links) {
    Link& link = links_[index];
    if (link.flow_seen == starting) {
      ++started.ways[link.way].times;
      continue;
    }
    link.flow_seen = starting;
    link.way = static_cast<std::uint32_t>(started.ways.size());
    if (of == 0) ++link.common;
    started.ways.push_back({index, 1, static_cast<std::uint32_t>(link.users.size())});
    link.users.push_back({flow, link.way});
  }
  change(links.front(), lanes_[in]);
  return flow;
}

void FairShare::end(Flow flow, std::size_t in) {
  for (const Way& way : flows_[flow].ways) {
    std::vector<Use>& users = links_[way.link].users;
    const Use last = users.back();
    users[way.place] = last;
    flows_[last.flow].ways[last.way].place = way.place;
    users.pop_back();
    if (Flows::lane_of(flow) == 0) --links_[way.link].common;
    if (!users.empty()) change(way.link, lanes_[in]);
  }
  flows_.give(flow);
}

bool FairShare::meets_common(Flow flow) const {
  return std::ranges::any_of(flows_[flow].ways, [&](const Way& way) { return common(way.link); });
}

double FairShare::most(Flow flow) const {
  double most = std::numeric_limits<double>::infinity();
  for (const Way& way : flows_[flow].ways) most = std::min(most, added_with_[way.link] / way.times);
  return most * flows_[flow].weight;
}

std::span<const FairShare::Flow> FairShare::settle(std::size_t lane) {
  Lane& in = lanes_[lane];
  in.moved.clear();
  if (in.changed.empty()) return in.moved;
  in.settling += lanes_.size();
  for (std::size_t i = 0; i < in.changed.size(); ++i) {
    Link& link = links_[in.changed[i]];
    link.changed = false;
    if (link.seen == in.settling || link.users.empty()) continue;
    connect(in.changed[i], in);
    share(in);
  }
  in.changed.clear();
  return in.moved;
}

// All links and flows that share something with one another, from a link on.
void FairShare::connect(LinkIndex first, Lane& in) {
  in.part_links.assign(1, first);
  in.part_flows.clear();
  links_[first].seen = in.settling;
  for (std::size_t i = 0; i < in.part_links.size(); ++i) {
    Link& link = links_[in.part_links[i]];
    link.left = link.bytes_per_s;
    link.load = 0;
    link.open = static_cast<std::uint32_t>(link.users.size());
    for (const Use& use : link.users) {
      FlowState& flow = flows_[use.flow];
      link.load += flow.weight * flow.ways[use.way].times;
      if (flow.seen == in.settling) continue;
      flow.seen = in.settling;
      flow.open = true;
      in.part_flows.push_back(use.flow);
      for (const Way& way : flow.ways) {
        if (links_[way.link].seen == in.settling) continue;
        links_[way.link].seen = in.settling;
        in.part_links.push_back(way.link);
      }
    }
  }
}

void FairShare::give(Flow flow, double rate, Lane& in) {
  FlowState& its = flows_[flow];
  its.open = false;
  if (its.rate == rate) return;
  its.rate = rate;
  in.moved.push_back(flow);
}

void FairShare::share(Lane& in) {
  if (in.part_flows.size() > 1) {
    constexpr std::size_t few = 16;  // links; looking through them all each time is quicker than a heap
    return in.part_links.size() <= few ? share_among_few(in) : share_among_many(in);
  }
  double rate = std::numeric_limits<double>::infinity();
  for (const LinkIndex link : in.part_links) rate = std::min(rate, offer(links_[link]));
  give(in.part_flows.front(), rate * flows_[in.part_flows.front()].weight, in);
}

// The flows of the link that offers least get that; then the next link.
void FairShare::share_among_few(Lane& in) {
  for (std::size_t open = in.part_flows.size(); open > 0;) {
    LinkIndex least = in.part_links.front();
    double rate = std::numeric_limits<double>::infinity();
    for (const LinkIndex index : in.part_links) {
      const Link& link = links_[index];
      if (link.open == 0 || offer(link) >= rate) continue;
      rate = offer(link);
      least = index;
    }
    const std::size_t before = open;
    for (const Use& use : links_[least].users) open -= flows_[use.flow].open ? 1 : 0;
    if (open == before) return;
    fill(least, in);
  }
}

// Offers only grow while flows that get less than them leave: an offer that has grown goes back into the heap.
void FairShare::share_among_many(Lane& in) {
  const auto later = [](const Offer& a, const Offer& b) { return a.rate > b.rate || (a.rate == b.rate && a.order > b.order); };
  in.offers.clear();
  for (std::uint32_t i = 0; i < in.part_links.size(); ++i) in.offers.push_back({offer(links_[in.part_links[i]]), i});
  std::ranges::make_heap(in.offers, later);
  while (!in.offers.empty()) {
    std::ranges::pop_heap(in.offers, later);
    Offer& first = in.offers.back();
    const Link& link = links_[in.part_links[first.order]];
    if (link.open > 0 && offer(link) > first.rate) {
      first.rate = offer(link);
      std::ranges::push_heap(in.offers, later);
      continue;
    }
    const LinkIndex bottleneck = in.part_links[first.order];
    in.offers.pop_back();
    if (link.open > 0) fill(bottleneck, in);
  }
}

void FairShare::fill(LinkIndex bottleneck, Lane& in) {
  const double rate = offer(links_[bottleneck]);
  for (const Use& use : links_[bottleneck].users) {
    FlowState& flow = flows_[use.flow];
    if (!flow.open) continue;
    give(use.flow, rate * flow.weight, in);
    for (const Way& way : flow.ways) {
      Link& link = links_[way.link];
      --link.open;
      link.load -= flow.weight * way.times;
      link.left -= flow.rate * way.times;
    }
  }
}

}  // namespace rehearse::sim
