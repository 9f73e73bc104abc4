// Two levels: rings inside the domains (direct exchanges where they are meshes), rings across them between members of the same local index,
// each on its own rail, one level after the other. All-to-all: first to the counterpart in the destination's domain, then to the
// destination inside it (node-limited, as NCCL's PXN and DeepEP). Domains that differ in size are cut into blocks of the largest size that
// divides all of them; the rings across then run through several blocks of a domain before they leave it.
#include <numeric>

#include "workloads/collectives/layout.hpp"
#include "workloads/collectives/passes.hpp"

namespace rehearse::workloads {
namespace {

using collectives::Layout;
using collectives::Pass;
using collectives::RingWalk;

int block_size(const Layout& layout) {
  int size = layout.smallest();
  for (int domain = 0; domain < layout.domains(); ++domain) size = std::gcd(size, layout.size(domain));
  return size;
}

// Blocks of g members, called domains from here on; position = domain*g + local index.
struct Grid {
  const Layout& layout;
  double bytes;
  int locals = block_size(layout), members = layout.members(), domains = members / locals;

  [[nodiscard]] int domain(int position) const { return position / locals; }
  [[nodiscard]] int at(int domain, int local) const { return domain * locals + local; }
  [[nodiscard]] int member(int domain, int local) const { return layout.member(at(domain, local)); }
  // Of the hop from this member to the next of its ring across, where groups lie differently in their nodes; else the sender's own.
  [[nodiscard]] int rail_across(int domain, int local) const {
    const int here = at(domain, local), next = at((domain + 1) % domains, local);
    if (!layout.knows_rails() || !layout.crosses(here, next)) return -1;
    return layout.member(layout.leaving(layout.domain(here), layout.domain(next), local));
  }
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
    ring.stops.push_back(
        {.member = grid.member(domain, local), .first_block = grid.at(domain, local), .rail_of = grid.rail_across(domain, local)});
  }
  return ring;
}

// The whole buffer among the members of one local index: each owns the blocks of its domain.
RingWalk whole_across(const Grid& grid, int local) {
  RingWalk ring{.part_bytes = grid.bytes / grid.domains};
  for (int domain = 0; domain < grid.domains; ++domain) {
    ring.stops.push_back({.member = grid.member(domain, local),
                          .first_block = grid.at(domain, 0),
                          .blocks = grid.locals,
                          .rail_of = grid.rail_across(domain, local)});
  }
  return ring;
}

int inside_all(std::vector<Round>& rounds, int start, const Grid& grid, Pass around, Pass direct) {
  int next = start;
  for (int domain = 0; domain < grid.domains; ++domain) next = (grid.layout.mesh() ? direct : around)(rounds, start, inside(grid, domain));
  return next;
}

int reduce_scatter_inside(std::vector<Round>& rounds, int start, const Grid& grid) {
  return inside_all(rounds, start, grid, collectives::reduce_scatter, collectives::direct_reduce_scatter);
}

int all_gather_inside(std::vector<Round>& rounds, int start, const Grid& grid) {
  return inside_all(rounds, start, grid, collectives::all_gather, collectives::direct_all_gather);
}

int across_all(std::vector<Round>& rounds, int start, const Grid& grid, Pass pass) {
  for (int local = 0; local < grid.locals; ++local) pass(rounds, start, across(grid, local));
  return start + grid.domains - 1;
}

std::vector<Round> all_reduce(const Grid& grid) {
  std::vector<Round> rounds;
  int next = reduce_scatter_inside(rounds, 0, grid);
  next = across_all(rounds, next, grid, collectives::reduce_scatter);
  next = across_all(rounds, next, grid, collectives::all_gather);
  all_gather_inside(rounds, next, grid);
  return rounds;
}

std::vector<Round> all_gather(const Grid& grid) {
  std::vector<Round> rounds;
  all_gather_inside(rounds, across_all(rounds, 0, grid, collectives::all_gather), grid);
  return rounds;
}

std::vector<Round> reduce_scatter(const Grid& grid) {
  std::vector<Round> rounds;
  across_all(rounds, reduce_scatter_inside(rounds, 0, grid), grid, collectives::reduce_scatter);
  return rounds;
}

std::vector<Round> broadcast(const Grid& grid, int root) {
  const int domain = grid.domain(root), local = root % grid.locals;
  std::vector<Round> rounds;
  const RingWalk first = whole_across(grid, local);
  const int start = collectives::all_gather(rounds, collectives::scatter(rounds, 0, first, domain), first);
  for (int d = 0; d < grid.domains; ++d) {
    const RingWalk ring = inside(grid, d);
    if (grid.layout.mesh()) {
      collectives::direct_all_gather(rounds, collectives::direct_scatter(rounds, start, ring, local), ring);
    } else {
      collectives::all_gather(rounds, collectives::scatter(rounds, start, ring, local), ring);
    }
  }
  return rounds;
}

// To the counterpart in domain d+shift: one's blocks for all members of that domain.
Round to_counterparts(const Grid& grid, int shift) {
  Round round;
  for (int from = 0; from < grid.members; ++from) {
    const int domain = (grid.domain(from) + shift) % grid.domains;
    round.transfers.push_back({.from = grid.layout.member(from),
                               .to = grid.member(domain, from % grid.locals),
                               .bytes = grid.bytes / grid.domains,
                               .first_block = from * grid.members + grid.at(domain, 0),
                               .blocks = grid.locals});
  }
  return round;
}

// To local member l+shift of one's own domain: what the members of one's local index have for it.
void add_to_neighbours(Round& round, const Grid& grid, int shift) {
  for (int from = 0; from < grid.members; ++from) {
    const int local = from % grid.locals, to = grid.at(grid.domain(from), (local + shift) % grid.locals);
    round.transfers.push_back({.from = grid.layout.member(from),
                               .to = grid.layout.member(to),
                               .bytes = grid.bytes / grid.locals,
                               .first_block = local * grid.members + to,
                               .blocks = grid.domains,
                               .block_stride = grid.locals * grid.members});
  }
}

std::vector<Round> all_to_all(const Grid& grid) {
  std::vector<Round> rounds;
  for (int shift = 1; shift < grid.domains; ++shift) rounds.push_back(to_counterparts(grid, shift));
  for (int shift = 1; shift < grid.locals; ++shift) {
    if (shift == 1 || !grid.layout.mesh()) rounds.emplace_back();  // a mesh has a link for every shift
    add_to_neighbours(rounds.back(), grid, shift);
  }
  return rounds;
}

const Collective& ring() { return CollectiveRegistry::get("ring"); }

bool two_levels(const Layout& layout) { return layout.domains() > 1 && block_size(layout) > 1; }

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

  [[nodiscard]] Pace pace(CollectiveKind kind, const GroupShape& group) const override {
    if (!two_levels(Layout(group))) return ring().pace(kind, group);
    return kind == CollectiveKind::all_to_all || kind == CollectiveKind::broadcast ? Pace::rounds : Pace::phases;
  }
  [[nodiscard]] bool rotates(CollectiveKind kind, const GroupShape& group) const override {
    return kind != CollectiveKind::broadcast && group.uniform();
  }

  [[nodiscard]] std::vector<Round> rounds(CollectiveKind kind, const GroupShape& group, double bytes, int root) const override {
    if (!supports(kind)) collectives::refuse("hierarchical", kind);
    collectives::check_root(group, root);
    const Layout layout(group);
    if (!two_levels(layout)) return ring().rounds(kind, group, bytes, root);
    return two_level_rounds(kind, {.layout = layout, .bytes = bytes}, layout.position(root));
  }

  [[nodiscard]] std::vector<Transfer> volumes(CollectiveKind kind, const GroupShape& group, double bytes, int root) const override {
    if (!supports(kind)) collectives::refuse("hierarchical", kind);
    if (two_levels(Layout(group))) return Collective::volumes(kind, group, bytes, root);
    return ring().volumes(kind, group, bytes, root);
  }

  // With D blocks of g members: all-reduce, reduce-scatter, all-gather: the whole buffer inside, 1/g of it across. Broadcast: the whole
  // buffer twice (scatter, all-gather) on the root's rail and inside. All-to-all: the blocks of D-1 domains across, of g-1 local members
  // inside. A mesh needs one round for what takes a ring g-1.
  [[nodiscard]] ClosedForm closed_form(CollectiveKind kind, const GroupShape& group, double bytes) const override {
    if (!supports(kind)) collectives::refuse("hierarchical", kind);
    const Layout layout(group);
    if (!two_levels(layout)) return ring().closed_form(kind, group, bytes);
    const int g = block_size(layout), d = layout.members() / g;
    const int laps = kind == CollectiveKind::all_reduce || kind == CollectiveKind::broadcast ? 2 : 1;
    const bool to_all = kind == CollectiveKind::all_to_all;
    const bool whole = to_all || kind == CollectiveKind::broadcast;
    const int crossing = to_all ? d - 1 : collectives::crossings(layout.domains(), layout.largest() / g, laps);
    const int steps_inside = layout.mesh() ? 1 : g - 1;
    return {.rounds_intra = laps * (steps_inside + d - 1) - crossing,
            .rounds_inter = crossing,
            .intra_bytes = laps * bytes * steps_inside / g,
            .inter_bytes = laps * (whole ? bytes : bytes / g) * (d - 1) / d,
            .sequential = true};
  }
};

const CollectiveRegistry::Registration<Hierarchical> hierarchical_registration("hierarchical");

}  // namespace
}  // namespace rehearse::workloads
