// The double binary tree over domains by which NCCL reduces and broadcasts (since 2.4; Sanders, Speck, Traeff 2009): two trees, each for
// half of the buffer, such that hardly a domain has children in both.
#pragma once

#include <vector>

namespace rehearse::workloads::collectives {

class NodeTree {
 public:
  NodeTree(int domains, bool second);
  [[nodiscard]] int parent(int domain) const { return parent_[static_cast<std::size_t>(domain)]; }  // -1: the root
  [[nodiscard]] int depth(int domain) const { return depth_[static_cast<std::size_t>(domain)]; }    // of the root: 0
  [[nodiscard]] int deepest() const;

 private:
  std::vector<int> parent_, depth_;
};

inline constexpr int trees = 2;
// Depth of the deeper of the two, and the most neighbours that a domain has in both together.
[[nodiscard]] int tree_depth(int domains);
[[nodiscard]] int most_neighbours(int domains);

}  // namespace rehearse::workloads::collectives
