// What tools say of one machine, and the cluster file that follows from it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/import/draft.hpp"

namespace rehearse::sim {

struct NodeFacts {
  enum class Wire { nvswitch, mesh, pcie, none };
  int gpus = 0;
  int compute = 0;  // capability times ten (80: A100), 0: not known
  int links = 0;    // NVLinks of a GPU, all together
  Wire wire = Wire::none;
  double wire_gb_per_s = 0;  // of a GPU's port (mesh: of one link to a peer), one direction; 0: not known
  int nics = 0;              // those that serve the GPUs
  double nic_gbps = 0;       // 0: not known
  std::vector<int> rails;    // by GPU: its nearest NIC, from 0; empty: no NIC
  double pcie_gb_per_s = 0;  // GPU to host; 0: not known
  double c2c_gb_per_s = 0;   // NVLink-C2C, GPU to host; 0: none
  bool grace = false;        // the host is an Arm processor
};

// One direction of a PCIe link: GT/s and lanes, 128 of 130 bits, as a number of GB/s; from generation 6 on 242 of 256 bytes.
[[nodiscard]] double pcie_gb_per_s(double gt_per_s, int lanes);

// One direction of one NVLink by compute capability; 0 where there is none known.
[[nodiscard]] double nvlink_gb_per_s(int compute);

// Fills a cluster. Efficiency and latency, which no such tool says, are those of the ready-made cluster with the same GPU and wire.
void describe_node(const NodeFacts& facts, Draft& draft);

}  // namespace rehearse::sim
