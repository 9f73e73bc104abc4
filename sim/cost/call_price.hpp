// What one call costs alone: alpha terms, bytes through the busiest ports and the rates of those ports (equations 2 and 3).
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "topology/cluster.hpp"
#include "workloads/collective.hpp"

namespace rehearse::sim {

// For how long a call, or several of them, send: and of that, at full rate, through the GPU's scale-up port and through its share of a NIC.
// Where others want the same port it is divided by messages, of which a tree or a ring between nodes has several at once.
struct PortTimes {
  double transfer_s = 0, scale_up_s = 0, nic_s = 0;
  double scale_up_messages_s = 0, nic_messages_s = 0;  // those times, each times the messages

  void add(const PortTimes& more, double times = 1) {
    transfer_s += times * more.transfer_s;
    scale_up_s += times * more.scale_up_s;
    nic_s += times * more.nic_s;
    scale_up_messages_s += times * more.scale_up_messages_s;
    nic_messages_s += times * more.nic_messages_s;
  }
};

// What a call is carried out as. exchange: messages between pairs; forwarded: an exchange in which counterparts pass tokens on.
enum class CallKind : std::uint8_t { none, copy, send, exchange, forwarded, collective };

struct CallPrice {
  CallKind kind = CallKind::none;
  std::string algorithm = "none";                     // as it is printed: "ring", "tree", ...; "send" for point-to-point
  const workloads::Collective* collective = nullptr;  // of that kind: whose rounds it runs
  topology::Protocol protocol = topology::Protocol::simple;
  double alpha_s = 0;            // rounds x latency, and call_s
  double call_s = 0;             // of alpha_s what is paid once
  double intra_bytes = 0;        // per rank and direction through its scale-up port
  double inter_bytes = 0;        // per rank and direction through its share of a NIC
  double passing_bytes = 0;      // of inter_bytes, those that pass the scale-up port too: all of them in a PCIe box, which has no other
  double intra_bytes_per_s = 0;  // rate of that port; 0 when unused
  double inter_bytes_per_s = 0;  // rate of that share when all groups of the kind send at once, reduced where trunks are oversubscribed
  double inter_alone_bytes_per_s = 0;  // the same when those of other pipeline stages do not
  double switch_overhead = 1;          // what a byte counts for that a switch reduces or multicasts; in intra_bytes already
  double network_overhead = 1;         // the same of the switches between domains; in inter_bytes already
  double scale_up_overhead = 1;        // what a byte counts for by protocol, or in an all-to-all, over the scale-up fabric; in intra_bytes
  double nic_overhead = 1;             // and between domains; in inter_bytes already
  double host_bytes = 0;               // over the link to the host, or through the host's memory
  double host_bytes_per_s = 0;         // rate of that link or memory when all GPUs that share it use it at once
  double host_alone_bytes_per_s = 0;   // the same when those of other pipeline stages do not
  double messages = 1;                 // at once through a scale-up port
  double nic_messages = 1;             // and through a NIC, of all groups of the kind
  bool sequential = false;             // the two parts follow one another instead of running together

  [[nodiscard]] std::string_view protocol_name() const;  // "Simple", "LL", "LL128"; "" where it is no collective
  [[nodiscard]] double transfer_s() const;
  [[nodiscard]] double seconds() const { return alpha_s + transfer_s(); }
  [[nodiscard]] PortTimes ports() const;
  // The bytes of its transfers become what they count for on their links: more where a switch or the protocol takes some of the rate.
  void weigh(std::vector<workloads::Transfer>& transfers, const workloads::GroupShape& group) const;
  void limit_network(double bytes_per_s) {
    inter_bytes_per_s = std::min(inter_bytes_per_s, bytes_per_s);
    inter_alone_bytes_per_s = std::min(inter_alone_bytes_per_s, bytes_per_s);
  }
  // While other pipeline stages leave NICs and host memories to it.
  [[nodiscard]] CallPrice alone() const;
};

// What tells apart how calls of one kind load their links.
[[nodiscard]] inline std::string algorithm_and_protocol(const CallPrice& price) {
  return price.algorithm + " " + std::string(price.protocol_name());
}

}  // namespace rehearse::sim
