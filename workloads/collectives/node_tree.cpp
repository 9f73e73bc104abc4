#include "workloads/collectives/node_tree.hpp"

#include <algorithm>

namespace rehearse::workloads::collectives {
namespace {

// Place 0 is the root with one child; below it the places are numbered in order, so that odd ones are leaves: a place whose lowest set bit
// is b hangs below the nearest place whose lowest set bit is 2b.
int parent_in_order(int place, int places) {
  if (place == 0) return -1;
  const int bit = place & -place, above = (place ^ bit) | (2 * bit);
  return above < places ? above : place ^ bit;
}

// The second tree is the first one mirrored, or when that would leave leaves leaves (odd numbers), shifted by one.
int place_of(int domain, int domains, bool second) {
  if (!second) return domain;
  return domains % 2 == 0 ? domains - 1 - domain : (domain + domains - 1) % domains;
}

int domain_at(int place, int domains, bool second) {
  if (!second) return place;
  return domains % 2 == 0 ? domains - 1 - place : (place + 1) % domains;
}

}  // namespace

NodeTree::NodeTree(int domains, bool second) {
  for (int domain = 0; domain < domains; ++domain) {
    int place = place_of(domain, domains, second), depth = 0;
    const int above = parent_in_order(place, domains);
    parent_.push_back(above < 0 ? -1 : domain_at(above, domains, second));
    while ((place = parent_in_order(place, domains)) >= 0) ++depth;
    depth_.push_back(depth);
  }
}

int NodeTree::deepest() const { return *std::max_element(depth_.begin(), depth_.end()); }

int tree_depth(int domains) { return std::max(NodeTree(domains, false).deepest(), NodeTree(domains, true).deepest()); }

int most_neighbours(int domains) {
  const NodeTree first(domains, false), second(domains, true);
  std::vector<int> count(static_cast<std::size_t>(domains));
  for (const NodeTree* tree : {&first, &second}) {
    for (int domain = 0; domain < domains; ++domain) {
      const int parent = tree->parent(domain);
      if (parent < 0) continue;
      ++count[static_cast<std::size_t>(domain)];
      ++count[static_cast<std::size_t>(parent)];
    }
  }
  return *std::max_element(count.begin(), count.end());
}

}  // namespace rehearse::workloads::collectives
