// What links of a kind reach that a cluster file describes by their data sheet alone, without `efficiency` or `latency`.
#pragma once

#include "topology/cluster.hpp"

namespace rehearse::topology {

struct TypicalLink {
  double efficiency;  // (0, 1]: share of the line rate that large messages reach
  double latency_s;   // of one message, or one round of a collective
};

// Medians over the different links of the clusters in platforms/clusters, as measured or taken over there from measured ones; a test holds
// them to these files (tests/topology).
constexpr TypicalLink typical_scale_up{0.8, 5e-6};  // NVLink, Infinity Fabric, HCCS and the like, switched or between pairs
constexpr TypicalLink typical_pcie{0.55, 5.7e-6};   // between the GPUs of a node
constexpr TypicalLink typical_nic{0.91, 6.6e-6};
constexpr TypicalLink typical_host{0.86, 10e-6};  // to the host's memory

// What NCCL's other protocols reach over links of a kind.
struct TypicalProtocols {
  ProtocolSpec ll, ll128;
};

// Over NVLink with switches and over NICs. Fitted to half of 201 times by nccl-tests on A100, H100, H200 and B200, one latency for all of a
// kind (docs/collectives.md, Protocols); efficiencies of NVLink are the medians over these GPUs, to which the same test holds them.
constexpr TypicalProtocols typical_nvlink_protocols{.ll = {9.3e-6, 1.1e-6, 0.22}, .ll128 = {14.7e-6, 2e-6, 0.55}};
constexpr TypicalProtocols typical_nic_protocols{.ll = {9.3e-6, 5.7e-6, 0.07}, .ll128 = {14.7e-6, 12e-6, 0.53}};

}  // namespace rehearse::topology
