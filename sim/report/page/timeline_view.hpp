// What of a timeline can be seen on a page: bars as wide as they are drawn, and the longest operations by name.
#pragma once

#include <iosfwd>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/timeline.hpp"

namespace rehearse::sim::page {

struct TimelineView {
  struct Bar {
    double start_s = 0, end_s = 0;
    std::string phase;  // as the console calls it
  };
  struct Row {
    int rank = 0;
    std::string rank_name, stream;
    std::vector<Bar> bars;  // by phase, then by start
  };
  struct Named {
    std::size_t row = 0;
    double start_s = 0, end_s = 0;
    std::string name;
  };
  double end_s = 0;
  std::vector<Row> rows;
  std::vector<Named> named;                 // the longest operations
  std::size_t operations = 0;               // of the whole timeline
  std::size_t ranks = 0, ranks_shown = 0;   // too many ranks are not all shown
  std::size_t bars = 0, bars_left_out = 0;  // the shortest, where there are too many
};

// Operations are added one by one, in any order; then the view is made.
class TimelineSketch {
 public:
  // Ranks whose operations will be added, where they are known before: of those that will not be shown less is kept.
  void expect(const std::set<int>& ranks) { expected_ = shown_of(ranks); }
  void name_rank(int rank, const std::string& name) { rank_names_[rank] = name; }
  void name_stream(int rank, int stream, const std::string& name) { stream_names_[{rank, stream}] = name; }
  void add(int rank, int stream, std::string_view phase, long long start_ns, long long end_ns, std::string_view name);
  [[nodiscard]] TimelineView view() const;

 private:
  struct Bar {
    long long start_ns = 0, end_ns = 0;
    int phase = 0;  // index into phases_
  };
  struct Long {
    long long length_ns = 0, start_ns = 0;
    int rank = 0, stream = 0;
    std::string name;
  };
  [[nodiscard]] static std::set<int> shown_of(const std::set<int>& ranks);
  [[nodiscard]] std::vector<TimelineView::Bar> merged(std::vector<Bar> bars, double near_ns) const;
  [[nodiscard]] int phase_number(std::string_view phase);

  std::optional<std::set<int>> expected_;  // those of them that will be shown
  std::set<int> ranks_;                    // that have operations
  std::map<int, std::string> rank_names_;
  std::map<std::pair<int, int>, std::string> stream_names_;
  std::map<std::pair<int, int>, std::vector<Bar>> rows_;  // [rank, stream] of those that may be shown
  std::vector<std::string> phases_;
  std::vector<Long> longest_;  // a heap, the shortest of them on top
  std::size_t operations_ = 0;
  long long end_ns_ = 0;
};

[[nodiscard]] TimelineView view_of(const Timeline& timeline);
// Of timeline.json as the trace reporter writes it, line by line. Throws config::InputError, which names the line.
[[nodiscard]] TimelineView view_of(std::istream& timeline_json, const std::string& path);

}  // namespace rehearse::sim::page
