#include "sim/analytic/port_sharing.hpp"

#include <algorithm>

namespace rehearse::sim {
namespace {

// A port as a communication wants it while it sends.
struct Wanted {
  double part = 0, messages = 1;
};
Wanted wanted(double sends_s, double messages_s, double transfer_s) {
  return {sends_s / transfer_s, sends_s > 0 ? messages_s / sends_s : 1};
}

// How many times as long one takes beside the other.
double longer(const Wanted& one, const Wanted& other) {
  if (one.part + other.part <= 1) return 1;
  return std::max(1.0, one.part / std::max(one.messages / (one.messages + other.messages), 1 - other.part));
}

}  // namespace

ContentionPair where_they_meet(const PortTimes& calls, const PortTimes& beside, double beside_s) {
  if (calls.transfer_s <= 0 || beside.transfer_s <= 0) return {};
  const auto scale_up = [](const PortTimes& of) { return wanted(of.scale_up_s, of.scale_up_messages_s, of.transfer_s); };
  const auto nic = [](const PortTimes& of) { return wanted(of.nic_s, of.nic_messages_s, of.transfer_s); };
  const double part = std::min(1.0, beside.transfer_s / beside_s);
  return {1 + part * (std::max(longer(scale_up(calls), scale_up(beside)), longer(nic(calls), nic(beside))) - 1),
          1 + part * (std::max(longer(scale_up(beside), scale_up(calls)), longer(nic(beside), nic(calls))) - 1)};
}

ContentionPair of_a_pass(const PassParts& pass, const ContentionPair& pair, const PortTimes& beside, double beside_s) {
  const ContentionPair met = where_they_meet(pass.ports, beside, beside_s);
  const double waits = std::max(0.0, pass.calls_s - pass.ports.transfer_s), sends = pass.calls_s - waits;
  const double alone = pass.compute_s + pass.calls_s, together = pair.alpha * pass.compute_s + waits + met.alpha * sends;
  if (alone <= 0) return {};
  const double advances = pair.alpha * pass.compute_s / pair.beta + waits + met.alpha * sends / met.beta;
  return {together / alone, together / advances};
}

}  // namespace rehearse::sim
