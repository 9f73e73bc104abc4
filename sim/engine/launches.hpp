// Graphs under way on one machine: how far each has come, and which of its operations wait for the last of their stream in another.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "sim/engine/graph_runner.hpp"
#include "sim/engine/runner_token.hpp"
#include "sim/engine/stream_ends.hpp"

namespace rehearse::sim {

struct Launch {
  std::size_t which = 0;  // of the known graphs
  const Launchable* what = nullptr;
  Execution* times = nullptr;
  std::function<void()> done;
  double begun_s = 0;
  std::size_t ended = 0;
  std::vector<std::uint16_t> met;      // [op] dependencies that have ended, less one where it waits for an earlier launch
  std::vector<std::uint32_t> present;  // [joint] members that have arrived
  // Operations of later launches that wait for the last of their stream in this one.
  std::unordered_map<workloads::OpId, std::vector<std::pair<LaunchIndex, workloads::OpId>>> followed_by;

  [[nodiscard]] const workloads::StepGraph& graph() const { return what->graph; }
};

class Launches {
 public:
  std::size_t add(const Launchable& graph);  // what begin() calls it by
  // Its first operation of each stream waits for the last of the newest launch that uses the stream and has not ended there.
  LaunchIndex begin(std::size_t which, Execution& times, std::function<void()> done, double now_s);
  // It is over; its place may be another's. What was to be called then.
  [[nodiscard]] std::function<void()> end(LaunchIndex which);

  [[nodiscard]] Launch& operator[](std::size_t which) { return *launches_[which]; }
  [[nodiscard]] const Launch& operator[](std::size_t which) const { return *launches_[which]; }
  [[nodiscard]] bool under_way() const { return !order_.empty(); }
  [[nodiscard]] const Launch& oldest() const { return *launches_[order_.front()]; }

 private:
  struct Known {
    Launchable what;
    std::optional<StreamEnds> ends;  // where it has met another launch
  };
  LaunchIndex free_place();
  const StreamEnds& ends_of(std::size_t which);
  void queue_behind(LaunchIndex index);

  std::deque<Known> known_;
  std::vector<std::unique_ptr<Launch>> launches_;
  std::vector<LaunchIndex> free_, order_;  // order_: under way, in the order they were launched
};

// std::runtime_error with the operations that lack something first.
[[noreturn]] void throw_stuck(const Launch& launch);

}  // namespace rehearse::sim
