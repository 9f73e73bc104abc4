#include "sim/engine/launches.hpp"

#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>

#include "config/huge_pages.hpp"

namespace rehearse::sim {

using workloads::OpId;

namespace {

template <class T>
void fill_anew(std::vector<T>& array, std::size_t count, T with) {
  array.clear();
  config::reserve_on_huge_pages(array, count);
  array.assign(count, with);
}

}  // namespace

std::size_t Launches::add(const Launchable& graph) {
  known_.push_back({graph, {}});
  return known_.size() - 1;
}

LaunchIndex Launches::begin(std::size_t which, Execution& times, std::function<void()> done, double now_s) {
  const LaunchIndex index = free_place();
  Launch& launch = *launches_[index];
  launch.which = which;
  launch.what = &known_[which].what;
  launch.times = &times;
  launch.done = std::move(done);
  launch.begun_s = now_s;
  launch.ended = 0;
  fill_anew(launch.met, launch.graph().size(), std::uint16_t{0});
  fill_anew(launch.present, launch.graph().joints(), std::uint32_t{0});
  for (auto* instants : {&times.arrive_s, &times.end_s}) fill_anew(*instants, launch.graph().size(), never_s);
  fill_anew(times.begin_s, launch.graph().joints(), never_s);
  queue_behind(index);
  order_.push_back(index);
  return index;
}

std::function<void()> Launches::end(LaunchIndex which) {
  std::erase(order_, which);
  free_.push_back(which);
  launches_[which]->followed_by.clear();
  return std::move(launches_[which]->done);
}

LaunchIndex Launches::free_place() {
  if (free_.empty()) {
    launches_.push_back(std::make_unique<Launch>());
    return static_cast<LaunchIndex>(launches_.size() - 1);
  }
  const LaunchIndex index = free_.back();
  free_.pop_back();
  return index;
}

const StreamEnds& Launches::ends_of(std::size_t which) {
  Known& known = known_[which];
  if (!known.ends) known.ends.emplace(known.what.graph);
  return *known.ends;
}

void Launches::queue_behind(LaunchIndex index) {
  Launch& launch = *launches_[index];
  for (std::size_t i = order_.size(); i-- > 0;) {
    Launch& before = *launches_[order_[i]];
    const std::int64_t shift = std::int64_t{launch.what->first_rank} - before.what->first_rank;
    const StreamEnds &own = ends_of(launch.which), &others = ends_of(before.which);
    own.each_first([&](std::int64_t rank, std::size_t stream, OpId first) {
      const OpId last = others.last(rank + shift, stream);
      if (last == workloads::no_op || launch.met[first] != 0 || before.times->end_s[last] != never_s) return;
      launch.met[first] = std::numeric_limits<std::uint16_t>::max();
      before.followed_by[last].emplace_back(index, first);
    });
  }
}

void throw_stuck(const Launch& launch) {
  const workloads::StepGraph& graph = launch.graph();
  std::string message = "the simulation stopped with " + std::to_string(graph.size() - launch.ended) + " of " +
                        std::to_string(graph.size()) + " operations unfinished; waiting first:";
  int listed = 0;
  for (OpId id = 0; id < graph.size() && listed < 5; ++id) {
    if (std::isfinite(launch.times->end_s[id]) || launch.met[id] == graph.in_degree(id)) continue;
    const workloads::Op op = graph.op(id);
    message += " rank " + std::to_string(graph.ranks[op.rank].rank) + " '" + graph.labels[op.label] + "'";
    ++listed;
  }
  throw std::runtime_error(message);
}

}  // namespace rehearse::sim
