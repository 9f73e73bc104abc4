// SimGrid's MPI, run as a program of its own: real MPI algorithms on a simulated fabric.
#pragma once

#include <string>

namespace rehearse::tests {

// Hosts with a scale-up port and a NIC each, both full duplex; hosts of one domain talk over the former, others over the latter.
struct SmpiFabric {
  int ranks = 0, per_domain = 0;
  double alpha_intra_s = 0, alpha_inter_s = 0;
  double intra_bytes_per_s = 1, inter_bytes_per_s = 1;
};

// Simulated seconds of a collective of tests/collectives/smpi/time_collective.c. algorithms: "allreduce:lr allgather:ring".
// Throws std::runtime_error with what smpirun said when it does not deliver a time.
[[nodiscard]] double smpi_seconds(const SmpiFabric& fabric, const std::string& collective, long bytes, const std::string& algorithms);

}  // namespace rehearse::tests
