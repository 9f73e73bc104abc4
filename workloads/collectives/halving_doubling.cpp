// Recursive halving reduce-scatter and recursive doubling all-gather (Thakur, Rabenseifner, Gropp 2005), largest blocks between the nearest
// members; for sizes that are not powers of two the distances of Bruck et al. 1997, which need no more rounds: ceil(log2 n) each.
#include <algorithm>
#include <bit>

#include "workloads/collectives/layout.hpp"

namespace rehearse::workloads {
namespace {

using collectives::Hop;
using collectives::Layout;

// One exchange of the reduce-scatter; the all-gather makes the same ones backwards.
struct Exchange {
  int distance = 1;
  int blocks = 0;      // per member
  bool mirror = true;  // partner by XOR (power of two) or at position + distance
};

// Power of two: distance 1 first, half of the buffer; then 2, a quarter. Otherwise the all-gather's distances 1, 2, 4, ... backwards.
std::vector<Exchange> exchanges(int n) {
  const bool mirror = std::has_single_bit(static_cast<unsigned>(n));
  std::vector<Exchange> out;
  for (int distance = 1; distance < n; distance *= 2) {
    out.push_back({.distance = distance, .blocks = mirror ? n / (2 * distance) : std::min(distance, n - distance), .mirror = mirror});
  }
  if (!mirror) std::reverse(out.begin(), out.end());
  return out;
}

int partner(const Exchange& exchange, int position, int n) {
  return exchange.mirror ? position ^ exchange.distance : (position + exchange.distance) % n;
}

// Reduce-scatter, XOR: what the receiver is to keep after the exchange, the blocks that agree with it in the bits up to `distance`.
// Bruck mirrored: the receiver's own block and those after it.
Transfer halving(const Layout& layout, const Exchange& exchange, int from, double bytes) {
  const int n = layout.members(), to = partner(exchange, from, n);
  return {.from = layout.member(from),
          .to = layout.member(to),
          .bytes = bytes * exchange.blocks / n,
          .first_block = exchange.mirror ? to % (2 * exchange.distance) : to,
          .blocks = exchange.blocks,
          .block_stride = exchange.mirror ? 2 * exchange.distance : 1,
          .reduce = true};
}

Transfer doubling(Transfer transfer) {
  std::swap(transfer.from, transfer.to);
  transfer.reduce = false;
  return transfer;
}

void append_reduce_scatter(std::vector<Round>& rounds, const Layout& layout, double bytes) {
  for (const Exchange& exchange : exchanges(layout.members())) {
    Round& round = rounds.emplace_back();
    for (int from = 0; from < layout.members(); ++from) round.transfers.push_back(halving(layout, exchange, from, bytes));
  }
}

void append_all_gather(std::vector<Round>& rounds, const Layout& layout, double bytes) {
  std::vector<Round> halvings;
  append_reduce_scatter(halvings, layout, bytes);
  std::reverse(halvings.begin(), halvings.end());
  for (Round& round : halvings) {
    std::transform(round.transfers.begin(), round.transfers.end(), round.transfers.begin(), doubling);
    rounds.push_back(std::move(round));
  }
}

std::vector<Hop> hops_of(const Exchange& exchange, int n) {
  std::vector<Hop> hops;
  for (int from = 0; from < n; ++from) hops.push_back({from, partner(exchange, from, n)});
  return hops;
}

class HalvingDoubling final : public Collective {
 public:
  [[nodiscard]] bool supports(CollectiveKind kind) const override {
    return kind == CollectiveKind::all_reduce || kind == CollectiveKind::all_gather || kind == CollectiveKind::reduce_scatter;
  }
  [[nodiscard]] bool rotates(CollectiveKind, const GroupShape& group) const override {
    return std::has_single_bit(static_cast<unsigned>(group.size));
  }

  [[nodiscard]] std::vector<Round> rounds(CollectiveKind kind, const GroupShape& group, double bytes, int root) const override {
    if (!supports(kind)) collectives::refuse("halving-doubling", kind);
    collectives::check_root(group, root);
    const Layout layout(group);
    std::vector<Round> rounds;
    if (kind != CollectiveKind::all_gather) append_reduce_scatter(rounds, layout, bytes);
    if (kind != CollectiveKind::reduce_scatter) append_all_gather(rounds, layout, bytes);
    return rounds;
  }

  // Per exchange alpha and blocks/n of the buffer, on the slower kind of port that it uses.
  [[nodiscard]] ClosedForm closed_form(CollectiveKind kind, const GroupShape& group, double bytes) const override {
    if (!supports(kind)) collectives::refuse("halving-doubling", kind);
    const Layout layout(group);
    ClosedForm form{.sequential = true};
    for (const Exchange& exchange : exchanges(layout.members())) {
      const auto halvings = hops_of(exchange, layout.members());
      const double sent = bytes * exchange.blocks / layout.members();
      if (kind != CollectiveKind::all_gather) add_round(form, layout, halvings, sent);
      if (kind != CollectiveKind::reduce_scatter) add_round(form, layout, backwards(halvings), sent);
    }
    return form;
  }
};

const CollectiveRegistry::Registration<HalvingDoubling> halving_doubling_registration("halving-doubling");

}  // namespace
}  // namespace rehearse::workloads
