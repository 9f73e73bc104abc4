// Weighted max-min fair rates of flows over links with multiplicities: the least rate per weight is as high as it can be, then the next,
// and so on. A change is worked out for what is connected to it by shared links, and only when the rates are asked for.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/engine/machine.hpp"
#include "sim/engine/numbered_by_lane.hpp"

namespace rehearse::sim {

class FairShare {
 public:
  using Flow = std::uint32_t;

  LinkIndex add_link(double bytes_per_s);
  // Before the first flow. What shares no link may go on in lanes of its own, each on a thread: flows are numbered by the lane that they
  // are `of`, and what changes is settled `in` the lane that changed it.
  void divide(std::size_t lanes);
  void set_bandwidth(LinkIndex link, double bytes_per_s, std::size_t in = 0);
  // Whether flows of lane 0 go over the link: what other lanes do to it concerns more than them.
  [[nodiscard]] bool common(LinkIndex link) const { return links_[link].common > 0; }

  // Over at least one link; a link named k times is loaded k times. Its rate is 0 until the next settle().
  Flow start(std::span<const LinkIndex> links, double weight = 1, std::size_t in = 0, std::size_t of = 0);
  void end(Flow flow, std::size_t in = 0);  // the number is used again

  // Works out the rates after all that has changed. The flows whose rate is another than before, each once; valid until the next call.
  std::span<const Flow> settle(std::size_t in = 0);
  [[nodiscard]] double rate(Flow flow) const { return flows_[flow].rate; }
  // Whether it goes over a link that is common.
  [[nodiscard]] bool meets_common(Flow flow) const;
  // No rate of it is above that, whatever else comes and goes and as long as links are not given more than they were added with.
  [[nodiscard]] double most(Flow flow) const;

  static constexpr int flow_bits = 26;  // of a flow's number; above them its lane
  static constexpr std::size_t most_lanes = std::size_t{1} << (32 - flow_bits);
  [[nodiscard]] static std::size_t lane_of(Flow flow) { return Flows::lane_of(flow); }
  [[nodiscard]] static std::size_t number_in_lane(Flow flow) { return Flows::place_of(flow); }

 private:
  struct Use {
    Flow flow = 0;
    std::uint32_t way = 0;  // index into the flow's ways
  };
  struct Link {
    double bytes_per_s = 0;
    std::vector<Use> users;
    bool changed = false;
    std::uint32_t common = 0;        // flows of lane 0 over it
    std::uint64_t seen = 0;          // the settling that looked at it last
    double left = 0, load = 0;       // while settling: bandwidth not given away, and by how much weight it is wanted
    std::uint32_t open = 0;          // while settling: ways over it without a rate yet
    std::uint32_t way = 0;           // while a flow starts: the way over this link
    std::uint64_t flow_seen = ~0UL;  // the flow that started over it last
  };
  struct Way {
    LinkIndex link = 0;
    std::uint32_t times = 1;
    std::uint32_t place = 0;  // in the link's users
  };
  struct FlowState {
    std::vector<Way> ways;
    double rate = 0, weight = 1;
    std::uint64_t seen = 0;
    bool open = false;  // while settling: without a rate yet
  };
  using Flows = NumberedByLane<FlowState, Flow, flow_bits>;
  struct Offer {
    double rate = 0;
    std::uint32_t order = 0;  // in part_links
  };
  struct alignas(64) Lane {
    std::vector<LinkIndex> changed;
    std::uint64_t settling = 0, starting = 0;  // of all lanes no two are ever the same
    std::vector<LinkIndex> part_links;         // what is connected to a change
    std::vector<Flow> part_flows, moved;
    std::vector<Offer> offers;
  };

  void change(LinkIndex link, Lane& in);
  void connect(LinkIndex first, Lane& in);
  void share(Lane& in);
  void share_among_few(Lane& in);
  void share_among_many(Lane& in);
  void fill(LinkIndex bottleneck, Lane& in);
  void give(Flow flow, double rate, Lane& in);
  // Rate per weight.
  [[nodiscard]] double offer(const Link& link) const { return link.left > 0 ? link.left / link.load : 0; }

  std::vector<Link> links_;
  std::vector<double> added_with_;  // [link] bytes per second
  Flows flows_;
  std::vector<Lane> lanes_{1};
};

}  // namespace rehearse::sim
