// Weighted max-min fair rates of flows over links with multiplicities: the least rate per weight is as high as it can be, then the next,
// and so on. A change is worked out for what is connected to it by shared links, and only when the rates are asked for.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/engine/machine.hpp"

namespace rehearse::sim {

class FairShare {
 public:
  using Flow = std::uint32_t;

  LinkIndex add_link(double bytes_per_s);
  void set_bandwidth(LinkIndex link, double bytes_per_s);

  // Over at least one link; a link named k times is loaded k times. Its rate is 0 until the next settle().
  Flow start(std::span<const LinkIndex> links, double weight = 1);
  void end(Flow flow);  // the number is used again

  // Works out the rates after all that has changed. The flows whose rate is another than before, each once; valid until the next call.
  std::span<const Flow> settle();
  [[nodiscard]] double rate(Flow flow) const { return flows_[flow].rate; }

 private:
  struct Use {
    Flow flow = 0;
    std::uint32_t way = 0;  // index into the flow's ways
  };
  struct Link {
    double bytes_per_s = 0;
    std::vector<Use> users;
    bool changed = false;
    std::uint32_t seen = 0;                  // the settling that looked at it last
    double left = 0, load = 0;               // while settling: bandwidth not given away, and by how much weight it is wanted
    std::uint32_t open = 0;                  // while settling: ways over it without a rate yet
    std::uint32_t flow_seen = ~0U, way = 0;  // while a flow starts: the way over this link
  };
  struct Way {
    LinkIndex link = 0;
    std::uint32_t times = 1;
    std::uint32_t place = 0;  // in the link's users
  };
  struct FlowState {
    std::vector<Way> ways;
    double rate = 0, weight = 1;
    std::uint32_t seen = 0;
    bool open = false;  // while settling: without a rate yet
  };

  void change(LinkIndex link);
  void connect(LinkIndex first);
  void share();
  void share_among_few();
  void share_among_many();
  void fill(LinkIndex bottleneck);
  void give(Flow flow, double rate);
  // Rate per weight.
  [[nodiscard]] double offer(const Link& link) const { return link.left > 0 ? link.left / link.load : 0; }

  std::vector<Link> links_;
  std::vector<FlowState> flows_;
  std::vector<Flow> free_;
  std::vector<LinkIndex> changed_;
  std::uint32_t settling_ = 0, starting_ = 0;
  std::vector<LinkIndex> part_links_;  // what is connected to a change
  std::vector<Flow> part_flows_, moved_;
  struct Offer {
    double rate = 0;
    std::uint32_t order = 0;  // in part_links_
  };
  std::vector<Offer> offers_;
};

}  // namespace rehearse::sim
