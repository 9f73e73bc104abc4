// The bucket algorithm for tori with as many ports as links (Sack and Gropp 2015), as for TPUs: the buffer goes in 2k parts over the k axes
// of a group, each part axis by axis in an order and a direction of its own, so that every link of every axis is in use both ways. All at
// once, chunk by chunk.
#include <algorithm>

#include "workloads/collectives/layout.hpp"

namespace rehearse::workloads {
namespace {

struct Axis {
  int size = 1, stride = 1;
  [[nodiscard]] int at(int member) const { return member / stride % size; }
  [[nodiscard]] int moved(int member, int place) const { return member + ((place % size + size) % size - at(member)) * stride; }
};

// One part of the buffer: the axes in its order, and which way round.
struct Way {
  std::vector<std::size_t> order;
  int direction = 1, channel = 0;
};

class Torus {
 public:
  Torus(const GroupShape& group, double bytes) : members_(group.size) {
    int stride = group.size;
    for (const int size : group.torus) axes_.push_back({size, stride /= size});
    part_bytes_ = bytes / static_cast<double>(2 * axes_.size());
    for (std::size_t first = 0; first < axes_.size(); ++first) {
      for (const int direction : {1, -1}) {
        Way& way = ways_.emplace_back();
        way.direction = direction;
        way.channel = static_cast<int>(ways_.size()) - 1;
        for (std::size_t i = 0; i < axes_.size(); ++i) way.order.push_back((first + i) % axes_.size());
      }
    }
  }
  [[nodiscard]] const std::vector<Way>& ways() const { return ways_; }
  [[nodiscard]] const std::vector<Axis>& axes() const { return axes_; }
  [[nodiscard]] int hops() const {
    int hops = 0;
    for (const Axis& axis : axes_) hops += axis.size - 1;
    return hops;
  }

  // Bytes of a way that pass from a member to the next on its i-th axis: its share of what is left after those before.
  [[nodiscard]] double bytes_on(const Way& way, std::size_t i) const {
    double bytes = part_bytes_;
    for (std::size_t before = 0; before < i; ++before) bytes /= axes_[way.order[before]].size;
    const int size = axes_[way.order[i]].size;
    return bytes * (size - 1) / size;
  }

  int reduce_scatter(std::vector<Round>& rounds, int start, const Way& way) const {
    for (std::size_t i = 0; i < way.order.size(); ++i) start = lap(rounds, start, way, i, true);
    return start;
  }
  void all_gather(std::vector<Round>& rounds, int start, const Way& way) const {
    for (std::size_t i = way.order.size(); i-- > 0;) start = lap(rounds, start, way, i, false);
  }

 private:
  // Round the i-th axis once; a member's blocks are those that have its place on the axes before.
  int lap(std::vector<Round>& rounds, int start, const Way& way, std::size_t i, bool reduce) const {
    const Axis& axis = axes_[way.order[i]];
    const int end = start + axis.size - 1;
    rounds.resize(std::max(rounds.size(), static_cast<std::size_t>(end)));
    for (int round = start; round < end; ++round) {
      for (int from = 0; from < members_; ++from) {
        const int owner = axis.at(from) - way.direction * (round - start + (reduce ? 1 : 0));
        pass_on(rounds[static_cast<std::size_t>(round)], way, i, from, axis.at(axis.moved(0, owner)), reduce);
      }
    }
    return end;
  }

  void pass_on(Round& round, const Way& way, std::size_t i, int from, int owner, bool reduce) const {
    const Axis& axis = axes_[way.order[i]];
    for (int block = 0; block < members_; ++block) {
      const auto same_place = [&](std::size_t which) { return axes_[which].at(block) == axes_[which].at(from); };
      if (axis.at(block) != owner || !std::all_of(way.order.begin(), way.order.begin() + static_cast<std::ptrdiff_t>(i), same_place))
        continue;
      round.transfers.push_back({.from = from,
                                 .to = axis.moved(from, axis.at(from) + way.direction),
                                 .bytes = part_bytes_ / members_,
                                 .channel = way.channel,
                                 .first_block = block,
                                 .blocks = 1,
                                 .reduce = reduce});
    }
  }

  int members_;
  double part_bytes_ = 0;
  std::vector<Axis> axes_;
  std::vector<Way> ways_;
};

int laps_on_torus(CollectiveKind kind) { return kind == CollectiveKind::all_reduce ? 2 : 1; }

class TorusRings final : public Collective {
 public:
  [[nodiscard]] bool supports(CollectiveKind kind) const override {
    return kind == CollectiveKind::all_reduce || kind == CollectiveKind::all_gather || kind == CollectiveKind::reduce_scatter;
  }
  [[nodiscard]] bool serves(CollectiveKind kind, const GroupShape& group) const override { return supports(kind) && !group.torus.empty(); }
  [[nodiscard]] Pace pace(CollectiveKind, const GroupShape&) const override { return Pace::chunks; }

  [[nodiscard]] std::vector<Round> rounds(CollectiveKind kind, const GroupShape& group, double bytes, int root) const override {
    const Torus torus = checked(kind, group, bytes, root);
    std::vector<Round> rounds;
    for (const Way& way : torus.ways()) {
      const int next = kind == CollectiveKind::all_gather ? 0 : torus.reduce_scatter(rounds, 0, way);
      if (kind != CollectiveKind::reduce_scatter) torus.all_gather(rounds, next, way);
    }
    return rounds;
  }

  [[nodiscard]] ClosedForm closed_form(CollectiveKind kind, const GroupShape& group, double bytes) const override {
    const Torus torus = checked(kind, group, bytes, 0);
    const int laps = laps_on_torus(kind), n = group.size;
    ClosedForm form{.rounds_inter = laps * torus.hops(), .inter_bytes = bytes * laps * (n - 1) / n};
    form.axis_bytes.resize(torus.axes().size());
    for (const Way& way : torus.ways()) {
      for (std::size_t i = 0; i < way.order.size(); ++i) form.axis_bytes[way.order[i]] += laps * torus.bytes_on(way, i) / 2;
    }
    // Two members in a row have one link, which takes both directions' parts.
    for (std::size_t axis = 0; axis < form.axis_bytes.size(); ++axis) form.axis_bytes[axis] *= torus.axes()[axis].size == 2 ? 2 : 1;
    return form;
  }

  [[nodiscard]] std::vector<Transfer> volumes(CollectiveKind kind, const GroupShape& group, double bytes, int root) const override {
    const Torus torus = checked(kind, group, bytes, root);
    std::vector<Transfer> all;
    for (const Way& way : torus.ways()) {
      for (std::size_t i = 0; i < way.order.size(); ++i) {
        const Axis& axis = torus.axes()[way.order[i]];
        for (int from = 0; from < group.size; ++from) {
          const int to = axis.moved(from, axis.at(from) + way.direction);
          all.push_back({.from = from, .to = to, .bytes = laps_on_torus(kind) * torus.bytes_on(way, i)});
        }
      }
    }
    return sum_per_pair(all);
  }

 private:
  Torus checked(CollectiveKind kind, const GroupShape& group, double bytes, int root) const {
    if (!supports(kind)) collectives::refuse("torus-rings", kind);
    static_cast<void>(collectives::Layout(group));
    collectives::check_root(group, root);
    if (!serves(kind, group)) {
      throw config::InputError(
          "collective 'torus-rings' needs a group of nodes of one GPU that fill whole axes of a torus, closed to rings",
          "'ring' serves every group");
    }
    return {group, bytes};
  }
};

const CollectiveRegistry::Registration<TorusRings> torus_rings_registration("torus-rings");

}  // namespace
}  // namespace rehearse::workloads
