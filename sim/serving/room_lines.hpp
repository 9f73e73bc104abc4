// Requests that want room on the decoding side, first come first served: a line for each set of instances that they may be sent to, so that
// who finds no room there is not asked again about all who stand behind it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include "sim/serving/request_state.hpp"

namespace rehearse::sim {

class RoomLines {
 public:
  using Instances = std::vector<bool>;  // of the side: whether it may go there

  void push(RequestId id, Instances to) {
    const auto found = std::ranges::find(lines_, to, &Line::to);
    Line& line = found == lines_.end() ? lines_.emplace_back(Line{std::move(to), {}}) : *found;
    line.waiting.push_back({came_++, id});
  }
  void erase(RequestId id) {
    for (Line& line : lines_) std::erase_if(line.waiting, [id](const auto& one) { return one.second == id; });
  }
  [[nodiscard]] bool empty() const {
    return std::ranges::all_of(lines_, [](const Line& line) { return line.waiting.empty(); });
  }
  [[nodiscard]] std::size_t lines() const { return lines_.size(); }
  [[nodiscard]] const Instances& to(std::size_t line) const { return lines_[line].to; }
  // The line whose first one came first, of those that are not closed (a line that it does not name is open).
  [[nodiscard]] std::optional<std::size_t> next(const std::vector<bool>& closed) const {
    std::optional<std::size_t> best;
    for (std::size_t i = 0; i < lines_.size(); ++i) {
      if (lines_[i].waiting.empty() || (i < closed.size() && closed[i])) continue;
      if (!best || lines_[i].waiting.front().first < lines_[*best].waiting.front().first) best = i;
    }
    return best;
  }
  [[nodiscard]] RequestId front(std::size_t line) const { return lines_[line].waiting.front().second; }
  void pop(std::size_t line) { lines_[line].waiting.pop_front(); }

 private:
  struct Line {
    Instances to;
    std::deque<std::pair<std::uint64_t, RequestId>> waiting;  // when it came among all
  };
  std::vector<Line> lines_;
  std::uint64_t came_ = 0;
};

}  // namespace rehearse::sim
