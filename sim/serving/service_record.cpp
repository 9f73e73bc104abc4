#include "sim/serving/service_record.hpp"

#include <algorithm>

namespace rehearse::sim {
namespace {

constexpr double rounding_s = 1e-12;

}  // namespace

LevelSeries::Levels ServiceRecord::levels_of(const Instance& of, double now_s) {
  const std::int64_t waiting = of.waiting(), running = of.running();
  return {static_cast<double>(of.pages_used(now_s)), static_cast<double>(running), static_cast<double>(waiting),
          static_cast<double>(of.requests_here() - running - waiting)};
}

void ServiceRecord::pages_grew(std::size_t instance, double now_s, std::int64_t pages) {
  LevelSeries::Levels levels = levels_[instance].now();
  levels[static_cast<std::size_t>(Level::pages)] = static_cast<double>(pages);
  levels_[instance].drift_to(now_s, levels);
}

bool ServiceRecord::keeps_slice(double start_s, double now_s) {
  if (full_s_ >= 0 || now_s < slices_from_s_ || start_s < slices_from_s_) return false;
  if (passes_.size() + hand_overs_.size() < most_slices) return true;
  full_s_ = now_s;
  return false;
}

void ServiceRecord::passes(std::size_t instance, double now_s, const PassRun& run, bool cut) {
  if (run.passes > 0 && keeps_slice(run.start_s, now_s)) passes_.push_back({instance, run.start_s, now_s, run, cut});
}

void ServiceRecord::outage(std::size_t instance, double now_s, bool fails) { outages_.push_back({instance, now_s, fails}); }

void ServiceRecord::hand_over_begins(std::size_t piece, RequestId id, std::size_t from, std::size_t to, double now_s) {
  std::vector<bool>& tracks = tracks_[from];
  const auto track = static_cast<std::size_t>(std::ranges::find(tracks, false) - tracks.begin());
  if (track == tracks.size()) tracks.push_back(false);
  tracks[track] = true;
  under_way_[piece] = {.slice = {.request = id, .from = from, .to = to, .track = track, .start_s = now_s}, .bytes = {}};
}

// A flow is as many bytes as take its time at the links' rate; what it moves is less, by the share of that rate which is reached.
void ServiceRecord::flows_begin(std::size_t piece, double now_s, const HandOver& hand_over) {
  OnTheWay& way = under_way_.at(piece);
  way.slice.bytes = hand_over.bytes;
  double sum = 0;
  for (const HandOver::Flow& flow : hand_over.flows) sum += flow.bytes;
  for (const HandOver::Flow& flow : hand_over.flows) {
    for (const LinkIndex link : flow.links) way.bytes[link] += flow.bytes / sum * hand_over.bytes;
  }
  way.flows_s = now_s;
  way.alone_s = 0;
  for (const auto& [link, bytes] : way.bytes) {
    if (hand_over.bytes > 0) way.alone_s = std::max(way.alone_s, bytes / hand_over.bytes * sum / rates_[link]);
    Sharing& sharing = sharing_[link];
    if (sharing.now++ == 0) sharing.since_s = now_s;
    LinkUse& use = links_[link];
    use.most_at_once = std::max(use.most_at_once, sharing.now);
  }
}

void ServiceRecord::leave_links(OnTheWay& way, double now_s, bool arrived) {
  for (const auto& [link, bytes] : way.bytes) {
    LinkUse& use = links_[link];
    Sharing& sharing = sharing_[link];
    if (--sharing.now == 0) use.busy_s += now_s - sharing.since_s;
    if (!arrived) continue;
    use.bytes += bytes;
    if (const double wait_s = now_s - way.flows_s - way.alone_s; wait_s > rounding_s) use.worst_wait_s = std::max(use.worst_wait_s, wait_s);
    ++use.hand_overs;
  }
  way.bytes.clear();
}

void ServiceRecord::flows_end(std::size_t piece, double now_s) { leave_links(under_way_.at(piece), now_s, true); }

void ServiceRecord::hand_over_ends(std::size_t piece, double now_s, bool arrived) {
  const auto found = under_way_.find(piece);
  leave_links(found->second, now_s, false);
  HandOverSlice slice = found->second.slice;
  slice.end_s = now_s;
  slice.arrived = arrived;
  tracks_[slice.from][slice.track] = false;
  under_way_.erase(found);
  if (keeps_slice(slice.start_s, now_s)) hand_overs_.push_back(slice);
}

void ServiceRecord::end(double now_s) {
  end_s_ = now_s;
  for (const LevelSeries& series : levels_) end_s_ = std::max(end_s_, series.end_s());
  for (LevelSeries& series : levels_) series.set(end_s_, series.now());
}

}  // namespace rehearse::sim
