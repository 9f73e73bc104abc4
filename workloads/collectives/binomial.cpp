// Binomial tree, unpipelined: the fewest rounds, the whole buffer in each. The first hop goes halfway round the group, the later ones stay
// nearer.
#include <algorithm>

#include "workloads/collectives/layout.hpp"

namespace rehearse::workloads {
namespace {

using collectives::Hop;
using collectives::Layout;

// Distances of the broadcast's rounds: the largest power of two below n, ..., 2, 1.
std::vector<int> distances(int n) {
  std::vector<int> out;
  for (int distance = 1; distance < n; distance *= 2) out.push_back(distance);
  std::reverse(out.begin(), out.end());
  return out;
}

// Counted from the root, members at multiples of 2*distance have the data and send it `distance` further.
std::vector<Hop> downwards(int n, int root, int distance) {
  std::vector<Hop> out;
  for (int from = 0; from + distance < n; from += 2 * distance) out.push_back({(root + from) % n, (root + from + distance) % n});
  return out;
}

Transfer whole_buffer(const Layout& layout, int from, int to, double bytes, bool reduce) {
  return {
      .from = layout.member(from), .to = layout.member(to), .bytes = bytes, .first_block = 0, .blocks = layout.members(), .reduce = reduce};
}

void append_broadcast(std::vector<Round>& rounds, const Layout& layout, int root, double bytes) {
  for (const int distance : distances(layout.members())) {
    Round& round = rounds.emplace_back();
    for (const auto& [from, to] : downwards(layout.members(), root, distance)) {
      round.transfers.push_back(whole_buffer(layout, from, to, bytes, false));
    }
  }
}

void append_reduce(std::vector<Round>& rounds, const Layout& layout, double bytes) {
  auto nearest_first = distances(layout.members());
  std::reverse(nearest_first.begin(), nearest_first.end());
  for (const int distance : nearest_first) {
    Round& round = rounds.emplace_back();
    for (const auto& [from, to] : backwards(downwards(layout.members(), 0, distance))) {
      round.transfers.push_back(whole_buffer(layout, from, to, bytes, true));
    }
  }
}

class Binomial final : public Collective {
 public:
  [[nodiscard]] bool supports(CollectiveKind kind) const override {
    return kind == CollectiveKind::all_reduce || kind == CollectiveKind::broadcast;
  }

  [[nodiscard]] std::vector<Round> rounds(CollectiveKind kind, const GroupShape& group, double bytes, int root) const override {
    if (!supports(kind)) collectives::refuse("binomial", kind);
    collectives::check_root(group, root);
    const Layout layout(group);
    std::vector<Round> rounds;
    if (kind == CollectiveKind::all_reduce) append_reduce(rounds, layout, bytes);
    append_broadcast(rounds, layout, kind == CollectiveKind::all_reduce ? 0 : layout.position(root), bytes);
    return rounds;
  }

  // alpha and the whole buffer per round; member 0 takes part in all of them.
  [[nodiscard]] ClosedForm closed_form(CollectiveKind kind, const GroupShape& group, double bytes) const override {
    if (!supports(kind)) collectives::refuse("binomial", kind);
    const Layout layout(group);
    ClosedForm form{.sequential = true};
    for (const int distance : distances(layout.members())) {
      const auto hops = downwards(layout.members(), 0, distance);
      if (kind == CollectiveKind::all_reduce) add_round(form, layout, backwards(hops), bytes);
      add_round(form, layout, hops, bytes);
    }
    return form;
  }
};

const CollectiveRegistry::Registration<Binomial> binomial_registration("binomial");

}  // namespace
}  // namespace rehearse::workloads
