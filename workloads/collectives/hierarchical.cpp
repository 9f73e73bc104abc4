// Two levels: rings inside the domains, rings across them between members of the same local index, each on its own rail, one level after
// the other. All-to-all: first to the counterpart in the destination's domain, then to the destination inside it (node-limited, as NCCL's
// PXN and DeepEP).
#include <string>

#include "workloads/collectives/layout.hpp"
#include "workloads/collectives/ring_walk.hpp"

namespace rehearse::workloads {
namespace {

using collectives::Layout;
using collectives::RingWalk;

// D domains of g members; position = domain*g + local index.
struct Grid {
  const Layout& layout;
  double bytes;
  int domains = layout.domains(), locals = layout.smallest(), members = layout.members();

  [[nodiscard]] int at(int domain, int local) const { return domain * locals + local; }
  [[nodiscard]] int member(int domain, int local) const { return layout.member(at(domain, local)); }
};

// Local member l owns the blocks of all members of local index l: 1/g of the buffer.
RingWalk inside(const Grid& grid, int domain) {
  RingWalk ring{.part_bytes = grid.bytes / grid.locals};
  for (int local = 0; local < grid.locals; ++local) {
    ring.stops.push_back({.member = grid.member(domain, local), .first_block = local, .blocks = grid.domains, .block_stride = grid.locals});
  }
  return ring;
}

// Every member owns its own block.
RingWalk across(const Grid& grid, int local) {
  RingWalk ring{.part_bytes = grid.bytes / grid.members};
  for (int domain = 0; domain < grid.domains; ++domain) {
    ring.stops.push_back({.member = grid.member(domain, local), .first_block = grid.at(domain, local)});
  }
  return ring;
}

// The whole buffer among the members of one local index: each owns the blocks of its domain.
RingWalk whole_across(const Grid& grid, int local) {
  RingWalk ring{.part_bytes = grid.bytes / grid.domains};
  for (int domain = 0; domain < grid.domains; ++domain) {
    ring.stops.push_back({.member = grid.member(domain, local), .first_block = grid.at(domain, 0), .blocks = grid.locals});
  }
  return ring;
}

using Pass = int (*)(std::vector<Round>&, int, const RingWalk&);

int inside_all(std::vector<Round>& rounds, int start, const Grid& grid, Pass pass) {
  for (int domain = 0; domain < grid.domains; ++domain) pass(rounds, start, inside(grid, domain));
  return start + grid.locals - 1;
}

int across_all(std::vector<Round>& rounds, int start, const Grid& grid, Pass pass) {
  for (int local = 0; local < grid.locals; ++local) pass(rounds, start, across(grid, local));
  return start + grid.domains - 1;
}

std::vector<Round> all_reduce(const Grid& grid) {
  std::vector<Round> rounds;
  int next = inside_all(rounds, 0, grid, collectives::reduce_scatter);
  next = across_all(rounds, next, grid, collectives::reduce_scatter);
  next = across_all(rounds, next, grid, collectives::all_gather);
  inside_all(rounds, next, grid, collectives::all_gather);
  return rounds;
}

std::vector<Round> all_gather(const Grid& grid) {
  std::vector<Round> rounds;
  inside_all(rounds, across_all(rounds, 0, grid, collectives::all_gather), grid, collectives::all_gather);
  return rounds;
}

std::vector<Round> reduce_scatter(const Grid& grid) {
  std::vector<Round> rounds;
  across_all(rounds, inside_all(rounds, 0, grid, collectives::reduce_scatter), grid, collectives::reduce_scatter);
  return rounds;
}

std::vector<Round> broadcast(const Grid& grid, int root) {
  const int domain = grid.layout.domain(root), local = root % grid.locals;
  std::vector<Round> rounds;
  const RingWalk first = whole_across(grid, local);
  const int start = collectives::all_gather(rounds, collectives::scatter(rounds, 0, first, domain), first);
  for (int d = 0; d < grid.domains; ++d) {
    const RingWalk ring = inside(grid, d);
    collectives::all_gather(rounds, collectives::scatter(rounds, start, ring, local), ring);
  }
  return rounds;
}

// To the counterpart in domain d+shift: one's blocks for all members of that domain.
Round to_counterparts(const Grid& grid, int shift) {
  Round round;
  for (int from = 0; from < grid.members; ++from) {
    const int domain = (grid.layout.domain(from) + shift) % grid.domains;
    round.transfers.push_back({.from = grid.layout.member(from),
                               .to = grid.member(domain, from % grid.locals),
                               .bytes = grid.bytes / grid.domains,
                               .first_block = from * grid.members + grid.at(domain, 0),
                               .blocks = grid.locals});
  }
  return round;
}

// To local member l+shift of one's own domain: what the members of one's local index have for it.
Round to_neighbours(const Grid& grid, int shift) {
  Round round;
  for (int from = 0; from < grid.members; ++from) {
    const int local = from % grid.locals, to = grid.at(grid.layout.domain(from), (local + shift) % grid.locals);
    round.transfers.push_back({.from = grid.layout.member(from),
                               .to = grid.layout.member(to),
                               .bytes = grid.bytes / grid.locals,
                               .first_block = local * grid.members + to,
                               .blocks = grid.domains,
                               .block_stride = grid.locals * grid.members});
  }
  return round;
}

std::vector<Round> all_to_all(const Grid& grid) {
  std::vector<Round> rounds;
  for (int shift = 1; shift < grid.domains; ++shift) rounds.push_back(to_counterparts(grid, shift));
  for (int shift = 1; shift < grid.locals; ++shift) rounds.push_back(to_neighbours(grid, shift));
  return rounds;
}

const Collective& ring() { return CollectiveRegistry::get("ring"); }

bool two_levels(const Layout& layout) { return layout.domains() > 1 && layout.largest() > 1; }

void check(CollectiveKind kind, const Layout& layout) {
  if (kind == CollectiveKind::send_recv) collectives::refuse("hierarchical", kind);
  if (!two_levels(layout) || layout.uniform()) return;
  throw config::InputError("collective 'hierarchical' needs as many members in every domain",
                           "the group has between " + std::to_string(layout.smallest()) + " and " + std::to_string(layout.largest()) +
                               " members in a domain; 'ring' serves such groups");
}

std::vector<Round> two_level_rounds(CollectiveKind kind, const Grid& grid, int root) {
  switch (kind) {
    case CollectiveKind::all_reduce:
      return all_reduce(grid);
    case CollectiveKind::all_gather:
      return all_gather(grid);
    case CollectiveKind::reduce_scatter:
      return reduce_scatter(grid);
    case CollectiveKind::broadcast:
      return broadcast(grid, root);
    case CollectiveKind::all_to_all:
      return all_to_all(grid);
    default:
      collectives::refuse("hierarchical", kind);
  }
}

class Hierarchical final : public Collective {
 public:
  [[nodiscard]] bool supports(CollectiveKind kind) const override { return kind != CollectiveKind::send_recv; }

  [[nodiscard]] std::vector<Round> rounds(CollectiveKind kind, const GroupShape& group, double bytes, int root) const override {
    collectives::check_root(group, root);
    const Layout layout(group);
    check(kind, layout);
    if (!two_levels(layout)) return ring().rounds(kind, group, bytes, root);
    return two_level_rounds(kind, {.layout = layout, .bytes = bytes}, layout.position(root));
  }

  [[nodiscard]] std::vector<Transfer> volumes(CollectiveKind kind, const GroupShape& group, double bytes, int root) const override {
    if (two_levels(Layout(group))) return Collective::volumes(kind, group, bytes, root);
    check(kind, Layout(group));
    return ring().volumes(kind, group, bytes, root);
  }

  // With D domains of g members: all-reduce, reduce-scatter, all-gather: the whole buffer inside, 1/g of it across. Broadcast: the whole
  // buffer twice (scatter, all-gather) on the root's rail and inside. All-to-all: the blocks of D-1 domains across, of g-1 local members
  // inside.
  [[nodiscard]] ClosedForm closed_form(CollectiveKind kind, const GroupShape& group, double bytes) const override {
    const Layout layout(group);
    check(kind, layout);
    if (!two_levels(layout)) return ring().closed_form(kind, group, bytes);
    const int d = layout.domains(), g = layout.largest();
    const bool twice = kind == CollectiveKind::all_reduce || kind == CollectiveKind::broadcast;
    const bool whole = kind == CollectiveKind::all_to_all || kind == CollectiveKind::broadcast;
    const int laps = twice ? 2 : 1;
    return {.rounds_intra = laps * (g - 1),
            .rounds_inter = laps * (d - 1),
            .intra_bytes = laps * bytes * (g - 1) / g,
            .inter_bytes = laps * (whole ? bytes : bytes / g) * (d - 1) / d,
            .sequential = true};
  }
};

const CollectiveRegistry::Registration<Hierarchical> registration("hierarchical");

}  // namespace
}  // namespace rehearse::workloads
