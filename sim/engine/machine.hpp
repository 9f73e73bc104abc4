// The only file pair that touches SimGrid: hosts that compute, links that carry flows, delays. One per process (SimGrid's clock and
// platform are global); callers that want several simulations fork (sim/engine/child_process.hpp).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

namespace rehearse::sim {

using HostIndex = std::uint32_t;
using LinkIndex = std::uint32_t;
using Token = std::uint64_t;

class Machine {
 public:
  // Throws std::logic_error when this process has had one before.
  Machine();
  ~Machine();
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  // Before seal(): the platform. speeds: relative compute speeds the host can be switched between; it starts with the first.
  HostIndex add_host(std::span<const double> speeds);
  LinkIndex add_link(double bytes_per_s);
  void seal();

  // `seconds` of work at speed 1.
  void compute(HostIndex host, double seconds, Token token);
  // A flow over these links (a link named k times is loaded k times); max-min fair sharing, no latency.
  void transfer(HostIndex from, HostIndex to, std::span<const LinkIndex> links, double bytes, Token token);
  void after(double delay_s, Token token);

  // Stops for good every activity whose token is chosen: it shares nothing any more and never ends. Delays go on.
  void halt(const std::function<bool(Token)>& chosen);

  void set_speed(HostIndex host, std::size_t which);
  void set_bandwidth(LinkIndex link, double bytes_per_s);

  [[nodiscard]] double now() const;

  // Runs until nothing is left; on_done is called for each token when its activity has ended, and may start others.
  void run(const std::function<void(Token)>& on_done);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace rehearse::sim
