#include "sim/report/page/timeline_view.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "sim/report/page/chart.hpp"
#include "sim/report/trace_events.hpp"

namespace rehearse::sim::page {
namespace {

constexpr std::size_t most_ranks = 24;
constexpr std::size_t most_bars = 5000;
constexpr std::size_t most_named = 150;
constexpr double near = 0.5;  // user units: bars of a phase that are nearer to one another are drawn as one

}  // namespace

int TimelineSketch::phase_number(std::string_view phase) {
  const auto found = std::ranges::find(phases_, phase);
  if (found != phases_.end()) return static_cast<int>(found - phases_.begin());
  phases_.emplace_back(phase);
  return static_cast<int>(phases_.size()) - 1;
}

void TimelineSketch::add(int rank, int stream, std::string_view phase, long long start_ns, long long end_ns, std::string_view name) {
  ranks_.insert(rank);
  const int number = phase_number(phase);
  if (!expected_ || expected_->contains(rank)) rows_[{rank, stream}].push_back({start_ns, end_ns, number});
  end_ns_ = std::max(end_ns_, end_ns);
  ++operations_;
  // The longest first; of equally long ones the earlier, on the lower rank and stream.
  const auto longer = [](const Long& one, const Long& other) {
    return std::tuple(-one.length_ns, one.start_ns, one.rank, one.stream) <
           std::tuple(-other.length_ns, other.start_ns, other.rank, other.stream);
  };
  Long candidate{end_ns - start_ns, start_ns, rank, stream, ""};
  if (longest_.size() == most_named) {
    if (!longer(candidate, longest_.front())) return;
    std::ranges::pop_heap(longest_, longer);
    longest_.pop_back();
  }
  candidate.name = name;
  longest_.push_back(std::move(candidate));
  std::ranges::push_heap(longest_, longer);
}

// All, or as many as there is room for, evenly out of them.
std::set<int> TimelineSketch::shown_of(const std::set<int>& all) {
  if (all.size() <= most_ranks) return all;
  const std::vector<int> ranks(all.begin(), all.end());
  std::set<int> shown;
  for (std::size_t i = 0; i < most_ranks; ++i) shown.insert(ranks[i * (ranks.size() - 1) / (most_ranks - 1)]);
  return shown;
}

std::vector<TimelineView::Bar> TimelineSketch::merged(std::vector<Bar> bars, double near_ns) const {
  std::ranges::sort(bars, {}, [](const Bar& bar) { return std::tuple(bar.phase, bar.start_ns, bar.end_ns); });
  std::vector<Bar> wide;
  for (const Bar& bar : bars) {
    const bool joins = !wide.empty() && wide.back().phase == bar.phase && static_cast<double>(bar.start_ns - wide.back().end_ns) < near_ns;
    if (!joins) wide.push_back(bar);
    wide.back().end_ns = std::max(wide.back().end_ns, bar.end_ns);
  }
  std::vector<TimelineView::Bar> out;
  for (const Bar& bar : wide) {
    out.push_back(
        {static_cast<double>(bar.start_ns) * 1e-9, static_cast<double>(bar.end_ns) * 1e-9, phases_[static_cast<std::size_t>(bar.phase)]});
  }
  return out;
}

namespace {

// The shortest bars go where there are too many.
void leave_out_the_shortest(TimelineView& view) {
  if (view.bars <= most_bars) return;
  std::vector<double> lengths;
  for (const auto& row : view.rows) {
    for (const auto& bar : row.bars) lengths.push_back(bar.end_s - bar.start_s);
  }
  std::ranges::nth_element(lengths, lengths.begin() + static_cast<std::ptrdiff_t>(most_bars), std::greater<>());
  const double shortest = lengths[most_bars];
  for (auto& row : view.rows) {
    view.bars_left_out += std::erase_if(row.bars, [&](const TimelineView::Bar& bar) { return bar.end_s - bar.start_s <= shortest; });
  }
}

}  // namespace

TimelineView TimelineSketch::view() const {
  TimelineView view;
  view.end_s = static_cast<double>(end_ns_) * 1e-9;
  view.operations = operations_;
  view.ranks = ranks_.size();
  const std::set<int> shown = shown_of(ranks_);
  view.ranks_shown = shown.size();
  const double near_ns = near / chart_width * static_cast<double>(end_ns_);
  std::map<std::pair<int, int>, std::size_t> row_of;
  for (const auto& [row, bars] : rows_) {
    if (!shown.contains(row.first)) continue;
    row_of[row] = view.rows.size();
    const auto rank_name = rank_names_.find(row.first);
    const auto stream_name = stream_names_.find(row);
    view.rows.push_back({row.first, rank_name == rank_names_.end() ? fmt::format("rank {}", row.first) : rank_name->second,
                         stream_name == stream_names_.end() ? fmt::format("stream {}", row.second) : stream_name->second,
                         merged(bars, near_ns)});
    view.bars += view.rows.back().bars.size();
  }
  leave_out_the_shortest(view);
  std::vector<Long> longest = longest_;
  std::ranges::sort(longest, {}, [](const Long& one) { return std::tuple(one.rank, one.stream, one.start_ns); });
  for (const Long& one : longest) {
    const auto row = row_of.find({one.rank, one.stream});
    if (row == row_of.end()) continue;
    view.named.push_back(
        {row->second, static_cast<double>(one.start_ns) * 1e-9, static_cast<double>(one.start_ns + one.length_ns) * 1e-9, one.name});
  }
  return view;
}

TimelineView view_of(const Timeline& timeline) {
  TimelineSketch sketch;
  std::set<std::pair<int, int>> named;
  std::set<int> ranks;
  for (std::uint32_t i = 0; i < timeline.ranks.size(); ++i) {
    sketch.name_rank(timeline.ranks[i].rank, rank_name(timeline.ranks[i]));
    timeline.events->each_of(i, [&](const TimelineEvent&) { ranks.insert(timeline.ranks[i].rank); });
  }
  sketch.expect(ranks);
  timeline.events->each([&](const TimelineEvent& event) {
    const int rank = timeline.ranks[event.rank].rank;
    const int stream = thread_of(event.stream);
    if (named.emplace(rank, stream).second) sketch.name_stream(rank, stream, timeline.streams[event.stream]);
    const TraceSpan span = trace_span(nanoseconds(event.start_s), nanoseconds(event.end_s));
    sketch.add(rank, stream, name_of(event.phase), span.start_ns, span.end_ns(), event.name);
  });
  return sketch.view();
}

}  // namespace rehearse::sim::page
