#include "sim/calibrate/called_by.hpp"

#include <algorithm>
#include <tuple>

namespace rehearse::sim {

std::unordered_map<std::int64_t, Calls::Caller> Calls::callers() {
  // Of spans that begin together the longer one holds the other.
  std::ranges::sort(spans_, {}, [](const Span& span) { return std::tuple(span.thread, span.start_us, -span.end_us); });
  std::ranges::sort(launches_, {}, [](const Launch& launch) { return std::tuple(launch.thread, launch.start_us); });
  std::unordered_map<std::int64_t, Caller> out;
  std::vector<const Span*> open;
  std::size_t next = 0;
  for (const Launch& launch : launches_) {
    for (; next < spans_.size() && std::tuple(spans_[next].thread, spans_[next].start_us) <= std::tuple(launch.thread, launch.start_us);
         ++next) {
      while (!open.empty() && (open.back()->thread != spans_[next].thread || open.back()->end_us < spans_[next].start_us)) open.pop_back();
      open.push_back(&spans_[next]);
    }
    while (!open.empty() && (open.back()->thread != launch.thread || open.back()->end_us < launch.start_us)) open.pop_back();
    out.emplace(launch.correlation, Caller{launch.start_us, open.empty() ? no_operator : open.back()->index});
  }
  return out;
}

}  // namespace rehearse::sim
