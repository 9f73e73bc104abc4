#include "sim/federated/negotiation_time.hpp"

#include "sim/federated/batched.hpp"

namespace rehearse::federated {

double negotiation_s(const Job& job, const Negotiation& negotiation) {
  std::vector<double> latency_s, up_s, down_s;
  std::vector<bool> dedicated;
  const double rounds = static_cast<double>(negotiation.rounds);
  for (const Device& device : job.devices) {
    latency_s.push_back(device.latency_s);
    up_s.push_back(negotiation.numbers_up / rounds * bytes_per_number / device.uplink_bytes_per_s);
    down_s.push_back(negotiation.numbers_down / rounds * bytes_per_number / device.downlink_bytes_per_s);
    dedicated.push_back(job.settings.entries[device.entry].dedicated);
  }
  return rounds * (joint_transfer(latency_s, up_s, dedicated).seconds + joint_transfer(latency_s, down_s, dedicated).seconds);
}

}  // namespace rehearse::federated
