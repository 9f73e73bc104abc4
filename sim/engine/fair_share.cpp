#include "sim/engine/fair_share.hpp"

#include <algorithm>
#include <limits>

namespace rehearse::sim {

LinkIndex FairShare::add_link(double bytes_per_s) {
  links_.emplace_back().bytes_per_s = bytes_per_s;
  return static_cast<LinkIndex>(links_.size() - 1);
}

void FairShare::change(LinkIndex link) {
  if (links_[link].changed) return;
  links_[link].changed = true;
  changed_.push_back(link);
}

void FairShare::set_bandwidth(LinkIndex link, double bytes_per_s) {
  if (links_[link].bytes_per_s == bytes_per_s) return;
  links_[link].bytes_per_s = bytes_per_s;
  if (!links_[link].users.empty()) change(link);
}

FairShare::Flow FairShare::start(std::span<const LinkIndex> links, double weight) {
  Flow flow = 0;
  if (free_.empty()) {
    flow = static_cast<Flow>(flows_.size());
    flows_.emplace_back();
  } else {
    flow = free_.back();
    free_.pop_back();
  }
  FlowState& state = flows_[flow];
  state.ways.clear();
  state.rate = 0;
  state.weight = weight;
  ++starting_;
  for (const LinkIndex index : links) {
    Link& link = links_[index];
    if (link.flow_seen == starting_) {
      ++state.ways[link.way].times;
      continue;
    }
    link.flow_seen = starting_;
    link.way = static_cast<std::uint32_t>(state.ways.size());
    state.ways.push_back({index, 1, static_cast<std::uint32_t>(link.users.size())});
    link.users.push_back({flow, link.way});
  }
  change(links.front());
  return flow;
}

void FairShare::end(Flow flow) {
  for (const Way& way : flows_[flow].ways) {
    std::vector<Use>& users = links_[way.link].users;
    const Use last = users.back();
    users[way.place] = last;
    flows_[last.flow].ways[last.way].place = way.place;
    users.pop_back();
    if (!users.empty()) change(way.link);
  }
  free_.push_back(flow);
}

std::span<const FairShare::Flow> FairShare::settle() {
  moved_.clear();
  if (changed_.empty()) return moved_;
  ++settling_;
  for (std::size_t i = 0; i < changed_.size(); ++i) {
    Link& link = links_[changed_[i]];
    link.changed = false;
    if (link.seen == settling_ || link.users.empty()) continue;
    connect(changed_[i]);
    share();
  }
  changed_.clear();
  return moved_;
}

// All links and flows that share something with one another, from a link on.
void FairShare::connect(LinkIndex first) {
  part_links_.assign(1, first);
  part_flows_.clear();
  links_[first].seen = settling_;
  for (std::size_t i = 0; i < part_links_.size(); ++i) {
    Link& link = links_[part_links_[i]];
    link.left = link.bytes_per_s;
    link.load = 0;
    link.open = static_cast<std::uint32_t>(link.users.size());
    for (const Use& use : link.users) {
      FlowState& flow = flows_[use.flow];
      link.load += flow.weight * flow.ways[use.way].times;
      if (flow.seen == settling_) continue;
      flow.seen = settling_;
      flow.open = true;
      part_flows_.push_back(use.flow);
      for (const Way& way : flow.ways) {
        if (links_[way.link].seen == settling_) continue;
        links_[way.link].seen = settling_;
        part_links_.push_back(way.link);
      }
    }
  }
}

void FairShare::give(Flow flow, double rate) {
  FlowState& state = flows_[flow];
  state.open = false;
  if (state.rate == rate) return;
  state.rate = rate;
  moved_.push_back(flow);
}

void FairShare::share() {
  if (part_flows_.size() > 1) {
    constexpr std::size_t few = 16;  // links; looking through them all each time is quicker than a heap
    return part_links_.size() <= few ? share_among_few() : share_among_many();
  }
  double rate = std::numeric_limits<double>::infinity();
  for (const LinkIndex link : part_links_) rate = std::min(rate, offer(links_[link]));
  give(part_flows_.front(), rate * flows_[part_flows_.front()].weight);
}

// The flows of the link that offers least get that; then the next link.
void FairShare::share_among_few() {
  for (std::size_t open = part_flows_.size(); open > 0;) {
    LinkIndex least = part_links_.front();
    double rate = std::numeric_limits<double>::infinity();
    for (const LinkIndex index : part_links_) {
      const Link& link = links_[index];
      if (link.open == 0 || offer(link) >= rate) continue;
      rate = offer(link);
      least = index;
    }
    const std::size_t before = open;
    for (const Use& use : links_[least].users) open -= flows_[use.flow].open ? 1 : 0;
    if (open == before) return;
    fill(least);
  }
}

// Offers only grow while flows that get less than them leave: an offer that has grown goes back into the heap.
void FairShare::share_among_many() {
  const auto later = [](const Offer& a, const Offer& b) { return a.rate > b.rate || (a.rate == b.rate && a.order > b.order); };
  offers_.clear();
  for (std::uint32_t i = 0; i < part_links_.size(); ++i) offers_.push_back({offer(links_[part_links_[i]]), i});
  std::ranges::make_heap(offers_, later);
  while (!offers_.empty()) {
    std::ranges::pop_heap(offers_, later);
    Offer& first = offers_.back();
    const Link& link = links_[part_links_[first.order]];
    if (link.open > 0 && offer(link) > first.rate) {
      first.rate = offer(link);
      std::ranges::push_heap(offers_, later);
      continue;
    }
    const LinkIndex bottleneck = part_links_[first.order];
    offers_.pop_back();
    if (link.open > 0) fill(bottleneck);
  }
}

void FairShare::fill(LinkIndex bottleneck) {
  const double rate = offer(links_[bottleneck]);
  for (const Use& use : links_[bottleneck].users) {
    FlowState& flow = flows_[use.flow];
    if (!flow.open) continue;
    give(use.flow, rate * flow.weight);
    for (const Way& way : flow.ways) {
      Link& link = links_[way.link];
      --link.open;
      link.load -= flow.weight * way.times;
      link.left -= flow.rate * way.times;
    }
  }
}

}  // namespace rehearse::sim
