#include "sim/job/refusal.hpp"

#include <fmt/format.h>

namespace rehearse::sim {

void refuse(const config::Node& job, std::string_view path, std::string_view message, std::string_view hint) {
  config::Node nearest = job;
  for (std::string_view rest = path; !rest.empty();) {
    const std::size_t dot = rest.find('.');
    const auto child = nearest.is_map() ? nearest.find(rest.substr(0, dot)) : std::nullopt;
    if (!child) nearest.fail_at_key(message, hint);
    nearest = *child;
    rest = dot == std::string_view::npos ? "" : rest.substr(dot + 1);
  }
  nearest.fail(message, hint);
}

std::string multiples_near(std::int64_t value, std::int64_t step) {
  const std::int64_t below = value / step * step;
  return below > 0 ? fmt::format("{} or {}", below, below + step) : fmt::format("{}", step);
}

}  // namespace rehearse::sim
