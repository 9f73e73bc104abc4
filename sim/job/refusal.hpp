// Complaints about a field of a job, whether it was written down or left to its default.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "config/node.hpp"

namespace rehearse::sim {

// Throws InputError at the field with this dotted path, or at the nearest enclosing one that the job has.
[[noreturn]] void refuse(const config::Node& job, std::string_view path, std::string_view message, std::string_view hint = {});

// "96 or 112": the positive multiples of step around value.
[[nodiscard]] std::string multiples_near(std::int64_t value, std::int64_t step);

}  // namespace rehearse::sim
