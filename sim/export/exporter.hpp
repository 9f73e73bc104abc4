// A format of another program that `rehearse export` writes. One format, one .cpp with its registration.
#pragma once

#include <functional>
#include <iosfwd>
#include <string>
#include <string_view>
#include <vector>

#include "config/registry.hpp"
#include "sim/job/job.hpp"

namespace rehearse::sim {

struct ExportedFile {
  std::string name;  // in the folder of -o; "" where the format is one file, which is -o itself
  std::function<void(std::ostream&)> write;
};

class Exporter {
 public:
  static constexpr std::string_view kind = "export format";
  virtual ~Exporter() = default;

  [[nodiscard]] virtual std::string_view summary() const = 0;  // what it writes, in a line
  // The import format that reads it back, by which is found what the file does not say; "" where there is none.
  [[nodiscard]] virtual std::string_view read_by() const = 0;
  // Throws config::InputError, at the key, for what the other program has nothing like. The job outlives the files.
  [[nodiscard]] virtual std::vector<ExportedFile> files(const Job& job) const = 0;
};

using ExporterRegistry = config::Registry<Exporter>;

}  // namespace rehearse::sim
