#include "sim/federated/packed_round.hpp"

namespace rehearse::federated {

std::vector<double> packed(const SimulatedRound& round) {
  std::vector<double> out{round.result.round_s,
                          round.result.aggregation_s,
                          round.queue_s,
                          static_cast<double>(round.lost),
                          round.result.uplink.busy_s,
                          round.result.uplink.reserved_s,
                          round.result.downlink.busy_s,
                          round.result.downlink.reserved_s,
                          round.result.server.busy_s,
                          round.result.server.reserved_s,
                          static_cast<double>(round.result.simulated)};
  for (std::size_t n = 0; n < round.result.devices.size(); ++n) {
    const DeviceRound& device = round.result.devices[n];
    out.insert(out.end(), {device.end_s, static_cast<double>(device.fate), static_cast<double>(round.stands_for[n])});
    out.insert(out.end(), device.phases.seconds.begin(), device.phases.seconds.end());
  }
  return out;
}

SimulatedRound unpacked(const std::vector<double>& in, std::size_t devices) {
  SimulatedRound round;
  std::size_t at = 0;
  const auto next = [&] { return in.at(at++); };
  round.result.method = "simulated";
  round.result.round_s = next();
  round.result.aggregation_s = next();
  round.queue_s = next();
  round.lost = next() != 0;
  for (ResourceUse* use : {&round.result.uplink, &round.result.downlink, &round.result.server}) {
    use->busy_s = next();
    use->reserved_s = next();
  }
  round.result.simulated = static_cast<std::size_t>(next());
  for (std::size_t n = 0; n < devices; ++n) {
    DeviceRound device{.end_s = next(), .phases = {}};
    device.fate = static_cast<Fate>(next());
    round.stands_for.push_back(static_cast<std::size_t>(next()));
    for (double& seconds : device.phases.seconds) seconds = next();
    round.result.devices.push_back(device);
  }
  return round;
}

}  // namespace rehearse::federated
