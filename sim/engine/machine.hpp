// Hosts that compute, links that carry flows, delays; all in one simulated time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "sim/solver.hpp"

namespace rehearse::sim {

using HostIndex = std::uint32_t;
using LinkIndex = std::uint32_t;
using Token = std::uint64_t;
using AreaIndex = std::uint32_t;
inline constexpr AreaIndex everywhere = 0;  // what belongs to no area in particular

// Says how far areas may be ahead of one another.
class Ahead {
 public:
  virtual ~Ahead() = default;
  // Whether an area may go on to that instant whatever else is still to happen before; asked between instants.
  [[nodiscard]] virtual bool goes_on(AreaIndex area, double until_s) = 0;
  // From here to meet() each area goes on as far as it may, several at once: what ends there is told, and goes_on() asked, by one thread
  // for an area, and of the others goes_on() goes by what was so when they parted. How much was looked at for it; 0: not now.
  [[nodiscard]] virtual std::size_t part() = 0;
  virtual void meet() = 0;
};

// Makes ready what machines of this solver need, once for all children that are forked afterwards; else the first machine does it. Throws
// InputError when SimGrid is asked for and cannot be loaded.
void load(Solver solver);

class Machine {
 public:
  // simgrid: one per process, since SimGrid's clock and platform are global; callers that want several fork (sim/engine/child_process.hpp).
  // Throws std::logic_error when this process has had one before, and as load() does.
  explicit Machine(Solver solver = Solver::automatic);
  ~Machine();
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  // Before seal(): the platform. speeds: relative compute speeds the host can be switched between; it starts with the first.
  HostIndex add_host(std::span<const double> speeds);
  LinkIndex add_link(double bytes_per_s);
  void seal();
  // Before run(): which area each host is in, from 1. Areas may be ahead of one another in time, as far as run() is told; without it all is
  // one. On so many threads, which changes nothing but how long it takes. No link's bandwidth is then above what it was added with.
  void divide(std::span<const AreaIndex> area_of_host, unsigned threads = 1);
  // Areas that go on one after another while others go on too are a lane, from 1, with what only they change. What they do to links that
  // flows of everywhere go over is put off until all have come to that instant.
  [[nodiscard]] std::size_t lanes() const;  // with 0, which is everywhere
  [[nodiscard]] std::size_t lane_of(AreaIndex area) const;
  [[nodiscard]] static std::size_t lane() { return thread_lane; }  // that the calling thread is in: 0 but between part() and meet()

  // `seconds` of work at speed 1. A host computes one thing at a time.
  void compute(HostIndex host, double seconds, Token token);
  // A flow over these links (a link named k times is loaded k times); weighted max-min fair sharing, no latency: where two flows compete,
  // their rates are as their weights. SimGrid takes differences below 1e-5 for none: weights there should be around 1.
  void transfer(HostIndex from, HostIndex to, std::span<const LinkIndex> links, double bytes, Token token, double weight = 1,
                AreaIndex area = everywhere);
  // In the area's time: what is told of then must concern the area alone. Everywhere, all areas have come to that instant; without a delay
  // it is a notice of that, and nothing that keeps areas from being ahead.
  void after(double delay_s, Token token, AreaIndex area = everywhere);

  // Stops for good every activity whose token is chosen: it shares nothing any more and never ends. Delays go on.
  void halt(const std::function<bool(Token)>& chosen);

  void set_speed(HostIndex host, std::size_t which);
  void set_bandwidth(LinkIndex link, double bytes_per_s);

  [[nodiscard]] double now() const;                   // of what on_done is told of
  [[nodiscard]] double next_s(AreaIndex area) const;  // when something ends there next, if nothing else is begun; else infinity
  // No delay but a notice and no flow that is everywhere ends before, whatever areas do that are ahead.
  [[nodiscard]] double quiet_until_s() const;

  // Runs until nothing is left; on_done is called for each token when its activity has ended, and may start others. What ends at the same
  // instant is told in the order in which it began.
  // Without `ahead` no area is ahead of another.
  void run(const std::function<void(Token)>& on_done, Ahead* ahead = nullptr);

  struct Impl;  // one of each solver (sim/engine/machine_impl.hpp)

 private:
  static inline constinit thread_local std::size_t thread_lane = 0;
  std::unique_ptr<Impl> impl_;
};

}  // namespace rehearse::sim
