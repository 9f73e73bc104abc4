// Rings that share no link of a full mesh.
#pragma once

#include <vector>

namespace rehearse::workloads::collectives {

// Directed Hamiltonian cycles of n points such that no step from one point to another is in two of them: Walecki's undirected ones (Lucas
// 1892; Alspach, "The wonderful Walecki construction", 2008), each walked both ways. n odd: n-1 of them, which use every link; n even: n-2,
// which leave one link of each point unused. n = 2: one.
[[nodiscard]] inline int disjoint_cycles(int n) { return n > 2 ? (n - 1) / 2 * 2 : 1; }
[[nodiscard]] std::vector<std::vector<int>> hamiltonian_cycles(int n);

}  // namespace rehearse::workloads::collectives
