// NCCL's ring. In a group that spans domains with at least g members each, g channels carry 1/g of the buffer each; the ring of channel k
// enters every domain at local member k, so that the NICs of a domain share the traffic between domains (NCCL: one ring per NIC). Inside a
// full mesh the channels are rings that share no link.
#include <algorithm>

#include "workloads/collectives/hamiltonian_cycles.hpp"
#include "workloads/collectives/layout.hpp"
#include "workloads/collectives/pairwise.hpp"
#include "workloads/collectives/ring_walk.hpp"

namespace rehearse::workloads {
namespace {

using collectives::Layout;
using collectives::RingWalk;
using collectives::Stop;

int channels_of(const Layout& layout) {
  if (layout.domains() > 1) return layout.smallest();
  return layout.mesh() ? collectives::disjoint_cycles(layout.members()) : 1;
}

// Through domain d on channel k: local members k, k+1, ..., k-1. The last hop leads to local member k of the next domain over the NIC of
// local member k, or of the k-th that has a rail in common with the next domain: every NIC of a uniform group then carries one flow out and
// one flow in.
void walk_domain(RingWalk& ring, const Layout& layout, int domain) {
  const int size = layout.size(domain), first = layout.first(domain);
  const int over = layout.domains() > 1 ? layout.member(layout.leaving(domain, (domain + 1) % layout.domains(), ring.channel)) : -1;
  for (int step = 0; step < size; ++step) {
    const int position = first + (ring.channel + step) % size;
    ring.stops.push_back({.member = layout.member(position), .first_block = position, .rail_of = step + 1 == size ? over : -1});
  }
}

RingWalk ring_over_domains(const Layout& layout, int channel, double bytes) {
  RingWalk ring{.part_bytes = bytes / channels_of(layout) / layout.members(), .channel = channel};
  for (int domain = 0; domain < layout.domains(); ++domain) walk_domain(ring, layout, domain);
  return ring;
}

std::vector<RingWalk> rings_over_mesh(const Layout& layout, double bytes) {
  std::vector<RingWalk> rings;
  const auto cycles = collectives::hamiltonian_cycles(layout.members());
  for (const std::vector<int>& cycle : cycles) {
    RingWalk& ring = rings.emplace_back();
    ring.part_bytes = bytes / static_cast<double>(cycles.size()) / layout.members();
    ring.channel = static_cast<int>(rings.size()) - 1;
    ring.stops.resize(cycle.size());
    std::ranges::transform(cycle, ring.stops.begin(),
                           [&](int position) { return Stop{.member = layout.member(position), .first_block = position}; });
  }
  return rings;
}

std::vector<RingWalk> rings_of(const Layout& layout, double bytes) {
  if (layout.domains() == 1 && layout.mesh()) return rings_over_mesh(layout, bytes);
  std::vector<RingWalk> rings;
  rings.reserve(static_cast<std::size_t>(channels_of(layout)));
  for (int channel = 0; channel < channels_of(layout); ++channel) rings.push_back(ring_over_domains(layout, channel, bytes));
  return rings;
}

int stop_of(const RingWalk& ring, int member) {
  const auto at = std::find_if(ring.stops.begin(), ring.stops.end(), [&](const Stop& stop) { return stop.member == member; });
  return static_cast<int>(at - ring.stops.begin());
}

void append_ring(std::vector<Round>& rounds, CollectiveKind kind, const RingWalk& ring, int root) {
  switch (kind) {
    case CollectiveKind::all_reduce:
      all_gather(rounds, reduce_scatter(rounds, 0, ring), ring);
      return;
    case CollectiveKind::all_gather:
      all_gather(rounds, 0, ring);
      return;
    case CollectiveKind::reduce_scatter:
      reduce_scatter(rounds, 0, ring);
      return;
    case CollectiveKind::broadcast:  // van de Geijn: scatter, then all-gather
      all_gather(rounds, scatter(rounds, 0, ring, stop_of(ring, root)), ring);
      return;
    default:
      collectives::refuse("ring", kind);
  }
}

// Every edge of a ring carries one part in every round (a broadcast's scatter does not).
bool even_edges(CollectiveKind kind) {
  return kind == CollectiveKind::all_reduce || kind == CollectiveKind::all_gather || kind == CollectiveKind::reduce_scatter;
}

int laps_of(CollectiveKind kind) { return kind == CollectiveKind::all_reduce || kind == CollectiveKind::broadcast ? 2 : 1; }

ClosedForm laps_form(const Layout& layout, int laps, bool even, double bytes) {
  const int n = layout.members(), hops = laps * (n - 1), channels = channels_of(layout);
  const double volume = bytes * hops / n;
  if (layout.domains() == 1) return {.rounds_intra = hops, .intra_bytes = volume / channels};
  const int inter = collectives::crossings(layout.domains(), layout.largest(), laps);
  // A member hands one channel to its NIC, unless its domain has more members than there are channels.
  const double inside = layout.largest() == channels ? (channels - 1.0) / channels : 1;
  return {.rounds_intra = hops - inter,
          .rounds_inter = inter,
          .intra_bytes = inside * volume,
          .inter_bytes = volume / channels,
          .hops_inside = even && layout.uniform() ? channels - 1 : 0};
}

class Ring final : public Collective {
 public:
  [[nodiscard]] bool supports(CollectiveKind) const override { return true; }

  // The pairwise exchange uses one link of a mesh after the other.
  [[nodiscard]] Pace pace(CollectiveKind kind, const GroupShape& group) const override {
    return kind == CollectiveKind::all_to_all && group.mesh ? Pace::rounds : Pace::even;
  }
  [[nodiscard]] bool rotates(CollectiveKind kind, const GroupShape&) const override { return kind != CollectiveKind::broadcast; }
  [[nodiscard]] bool laps(CollectiveKind kind) const override { return even_edges(kind); }
  [[nodiscard]] bool runs_by_protocols(CollectiveKind kind) const override { return laps(kind) || kind == CollectiveKind::broadcast; }
  // Each block goes on once, inside the domain or out of it: in groups over unequal domains no port carries the most of both.
  [[nodiscard]] double most_sent(CollectiveKind kind, const GroupShape& group, double bytes) const override {
    return even_edges(kind) ? laps_of(kind) * bytes * (group.size - 1) / group.size : Collective::most_sent(kind, group, bytes);
  }
  // Channels are one message to the same neighbour where domains have more than two members.
  [[nodiscard]] double messages_at_once(CollectiveKind kind, const GroupShape& group, double bytes, double port_bytes) const override {
    if (!even_edges(kind)) return 1;
    const bool one_message = collectives::smallest_domain(group) > 2;
    return one_message ? 1 : collectives::messages_of_channels(group, most_sent(kind, group, bytes), port_bytes);
  }

  [[nodiscard]] std::vector<Round> rounds(CollectiveKind kind, const GroupShape& group, double bytes, int root) const override {
    collectives::check_root(group, root);
    const Layout layout(group);
    if (kind == CollectiveKind::all_to_all) return collectives::pairwise_rounds(layout, bytes);
    if (kind == CollectiveKind::send_recv) return collectives::shift_rounds(layout, bytes);
    std::vector<Round> rounds;
    for (const RingWalk& ring : rings_of(layout, bytes)) append_ring(rounds, kind, ring, root);
    return rounds;
  }

  [[nodiscard]] ClosedForm closed_form(CollectiveKind kind, const GroupShape& group, double bytes) const override {
    const Layout layout(group);
    if (layout.members() == 1) return {};
    if (kind == CollectiveKind::all_to_all) return collectives::pairwise_form(layout, bytes);
    if (kind == CollectiveKind::send_recv) return collectives::shift_form(layout, bytes);
    return laps_form(layout, laps_of(kind), even_edges(kind), bytes);
  }

  // Without writing down n rounds of n transfers: a large group would need gigabytes.
  [[nodiscard]] std::vector<Transfer> volumes(CollectiveKind kind, const GroupShape& group, double bytes, int root) const override {
    if (!even_edges(kind)) return Collective::volumes(kind, group, bytes, root);
    collectives::check_root(group, root);
    const Layout layout(group);
    std::vector<Transfer> out;
    for (const RingWalk& ring : rings_of(layout, bytes)) add_edges(out, ring, ring.part_bytes * laps_of(kind) * (ring.size() - 1));
    return sum_per_pair(out);
  }

 private:
  static void add_edges(std::vector<Transfer>& out, const RingWalk& ring, double bytes) {
    if (ring.size() == 1) return;
    for (std::size_t i = 0; i < ring.stops.size(); ++i) {
      const Stop &from = ring.stops[i], &to = ring.stops[(i + 1) % ring.stops.size()];
      out.push_back({.from = from.member, .to = to.member, .bytes = bytes, .rail_of = from.rail_of});
    }
  }
};

const CollectiveRegistry::Registration<Ring> ring_registration("ring");

}  // namespace
}  // namespace rehearse::workloads
