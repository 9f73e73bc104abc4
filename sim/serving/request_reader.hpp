// The requests of a file one after another, whatever its format.
#pragma once

#include <cstdint>
#include <istream>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "workloads/serving/request.hpp"

namespace rehearse::sim {

inline constexpr double most_trace_seconds = 1e9;
inline constexpr int most_trace_tokens = 100'000'000;

class RequestReader {
 public:
  virtual ~RequestReader() = default;
  // False after the last one. Throws config::InputError at the line of what is wrong.
  [[nodiscard]] virtual bool next(workloads::Request& request) = 0;
  // Of the request that it is at, the hashes of its prompt's blocks. Refuses one that has none.
  [[nodiscard]] virtual std::vector<std::uint64_t> hashes() const = 0;
  // Refuses the line that it is at.
  [[noreturn]] virtual void fail(std::string_view why, std::string_view hint = {}) const = 0;
  [[nodiscard]] virtual bool has_times() const { return true; }
  // Whether requests up to here had hashes.
  [[nodiscard]] virtual bool has_hashes() const = 0;
};

// A table, of one of the headers in request_trace.hpp.
[[nodiscard]] std::unique_ptr<RequestReader> requests_of_table(std::unique_ptr<std::istream> in, const std::string& name);
// An object a line, as Mooncake publishes them.
[[nodiscard]] std::unique_ptr<RequestReader> requests_of_lines(std::unique_ptr<std::istream> in, const std::string& name);

}  // namespace rehearse::sim
