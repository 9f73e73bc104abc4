// What a solver does for Machine (sim/engine/machine.hpp has the contract of each function).
#pragma once

#include "sim/engine/machine.hpp"

namespace rehearse::sim {

struct Machine::Impl {
  virtual ~Impl() = default;
  virtual HostIndex add_host(std::span<const double> speeds) = 0;
  virtual LinkIndex add_link(double bytes_per_s) = 0;
  virtual void divide(std::span<const AreaIndex> area_of_host, unsigned threads) = 0;
  [[nodiscard]] virtual std::size_t lanes() const = 0;
  [[nodiscard]] virtual std::size_t lane_of(AreaIndex area) const = 0;
  virtual void seal() = 0;
  virtual void compute(HostIndex host, double seconds, Token token) = 0;
  virtual void transfer(HostIndex from, HostIndex to, std::span<const LinkIndex> links, double bytes, Token token, double weight,
                        AreaIndex area) = 0;
  virtual void after(double delay_s, Token token, AreaIndex area) = 0;
  virtual void halt(const std::function<bool(Token)>& chosen) = 0;
  virtual void set_speed(HostIndex host, std::size_t which) = 0;
  virtual void set_bandwidth(LinkIndex link, double bytes_per_s) = 0;
  [[nodiscard]] virtual double now() const = 0;
  [[nodiscard]] virtual double next_s(AreaIndex area) const = 0;
  [[nodiscard]] virtual double quiet_until_s() const = 0;
  virtual void run(const std::function<void(Token)>& on_done, Ahead* ahead) = 0;

 protected:
  static void enter(std::size_t lane) { thread_lane = lane; }
};

[[nodiscard]] std::unique_ptr<Machine::Impl> event_machine();
// Throws std::logic_error when this process has had one before, and as load() does.
[[nodiscard]] std::unique_ptr<Machine::Impl> simgrid_machine();

}  // namespace rehearse::sim

// The machine itself, for the caller to delete: in a module of its own (sim/engine/load_simgrid.cpp says where).
extern "C" [[nodiscard]] rehearse::sim::Machine::Impl* rehearse_simgrid_machine();
