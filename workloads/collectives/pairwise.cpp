#include "workloads/collectives/pairwise.hpp"

#include <algorithm>

namespace rehearse::workloads::collectives {
namespace {

constexpr int inside = 0, between = 1;  // channels

Transfer exchange(const Layout& layout, const Hop& hop, double bytes) {
  return {.from = layout.member(hop.from),
          .to = layout.member(hop.to),
          .bytes = bytes / layout.members(),
          .channel = layout.crosses(hop.from, hop.to) ? between : inside,
          .first_block = hop.from * layout.members() + hop.to,
          .blocks = 1};
}

void append(Round& round, const Layout& layout, const std::vector<Hop>& hops, double bytes) {
  for (const Hop& hop : hops) round.transfers.push_back(exchange(layout, hop, bytes));
}

// Uniform groups: member l of domain d to member l+b of domain d+a.
std::vector<Hop> aligned(const Layout& layout, int a, int b) {
  std::vector<Hop> hops;
  const int domains = layout.domains(), size = layout.smallest();
  for (int from = 0; from < layout.members(); ++from) {
    hops.push_back({from, (layout.domain(from) + a) % domains * size + (from % size + b) % size});
  }
  return hops;
}

std::vector<Hop> shifted(int n, int shift) {
  std::vector<Hop> hops;
  for (int from = 0; from < n; ++from) hops.push_back({from, (from + shift) % n});
  return hops;
}

std::vector<Hop> next_members(const Layout& layout) {
  std::vector<Hop> hops;
  for (const auto& [member, next] : shifted(layout.members(), 1)) hops.push_back({layout.position(member), layout.position(next)});
  return hops;
}

std::vector<Round> aligned_rounds(const Layout& layout, double bytes) {
  const int size = layout.smallest();
  std::vector<Round> rounds;
  for (int a = 1; a < layout.domains(); ++a) {
    for (int b = 0; b < size; ++b) append(rounds.emplace_back(), layout, aligned(layout, a, b), bytes);
  }
  rounds.resize(std::max(rounds.size(), static_cast<std::size_t>(size - 1)));
  for (int b = 1; b < size; ++b) append(rounds[static_cast<std::size_t>(b - 1)], layout, aligned(layout, 0, b), bytes);
  return rounds;
}

std::vector<Round> shifted_rounds(const Layout& layout, double bytes) {
  std::vector<Round> rounds;
  for (int shift = 1; shift < layout.members(); ++shift) append(rounds.emplace_back(), layout, shifted(layout.members(), shift), bytes);
  return rounds;
}

// Blocks through the busiest NIC when every shift lasts as long as its own busiest one needs.
int shifted_blocks(const Layout& layout) {
  int blocks = 0;
  for (int shift = 1; shift < layout.members(); ++shift) blocks += busiest_nic(layout, shifted(layout.members(), shift));
  return blocks;
}

}  // namespace

std::vector<Round> pairwise_rounds(const Layout& layout, double bytes) {
  return layout.uniform() ? aligned_rounds(layout, bytes) : shifted_rounds(layout, bytes);
}

// Uniform: n-g rounds between domains, g-1 inside beside them. Otherwise every shift crosses domains somewhere.
ClosedForm pairwise_form(const Layout& layout, double bytes) {
  const int n = layout.members(), largest = layout.largest();
  if (layout.domains() == 1) return {.rounds_intra = n - 1, .intra_bytes = bytes * (n - 1) / n};
  const int blocks = layout.uniform() ? n - largest : shifted_blocks(layout);
  return {
      .rounds_inter = layout.uniform() ? n - largest : n - 1, .intra_bytes = bytes * (largest - 1) / n, .inter_bytes = bytes * blocks / n};
}

std::vector<Round> shift_rounds(const Layout& layout, double bytes) {
  if (layout.members() == 1) return {};
  Round round;
  for (const auto& [from, to] : next_members(layout)) {
    round.transfers.push_back({.from = layout.member(from), .to = layout.member(to), .bytes = bytes, .first_block = from, .blocks = 1});
  }
  return {round};
}

ClosedForm shift_form(const Layout& layout, double bytes) {
  const auto hops = next_members(layout);
  const auto across = std::count_if(hops.begin(), hops.end(), [&](const Hop& hop) { return layout.crosses(hop.from, hop.to); });
  return {.rounds_intra = across > 0 ? 0 : 1,
          .rounds_inter = across > 0 ? 1 : 0,
          .intra_bytes = across < layout.members() ? bytes : 0,
          .inter_bytes = bytes * busiest_nic(layout, hops)};
}

}  // namespace rehearse::workloads::collectives
