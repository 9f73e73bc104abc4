// What goes on in an area of the event machine, and when it ends there.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "sim/engine/event_heap.hpp"
#include "sim/engine/machine.hpp"

namespace rehearse::sim {

struct Activity {
  // notice: that all areas have come to an instant. put_off: what an area that was ahead has left for all to come to.
  enum class Kind : std::uint8_t { none, delay, notice, put_off, computation, flow };
  Token token = 0;
  Kind kind = Kind::none;
  std::uint32_t where = 0;  // host or flow
  double left = 0;          // seconds of work, or bytes, at since_s
  double rate = 0;          // of them per second
  double since_s = 0;

  [[nodiscard]] bool shares() const { return kind == Kind::computation || kind == Kind::flow; }
};

struct Activities {
  static constexpr double never = std::numeric_limits<double>::infinity();

  std::vector<Activity> all = {};
  EventHeap heap = {};  // of their indices
  std::vector<EventHeap::Event> free = {};
  bool touched = false;      // since it was last seen when the next of them ends
  double put_off_s = never;  // when the area has come to what all must come to first

  EventHeap::Event add(const Activity& activity) {
    if (free.empty()) {
      all.push_back(activity);
      return static_cast<EventHeap::Event>(all.size() - 1);
    }
    const EventHeap::Event id = free.back();
    free.pop_back();
    all[id] = activity;
    return id;
  }
  // When the next of them ends.
  [[nodiscard]] double first_s() const { return heap.empty() ? never : heap.first_at_s(); }
};

}  // namespace rehearse::sim
