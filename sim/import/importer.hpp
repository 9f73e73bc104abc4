// A format of another program that `rehearse import` reads. One format, one .cpp with its registration.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "config/registry.hpp"
#include "sim/import/draft.hpp"

namespace rehearse::sim {

struct ImportRequest {
  std::string path;
  std::string part;                                   // of a file with several jobs: which; "" where there is one
  std::map<std::string, std::string> variables = {};  // of the environment that a script or ${NAME} in a file reads
  std::int64_t gpus = 0;                              // that --gpus says; 0: nothing
};

class Importer {
 public:
  static constexpr std::string_view kind = "import format";
  virtual ~Importer() = default;

  [[nodiscard]] virtual std::string_view summary() const = 0;         // what it reads, in a line
  [[nodiscard]] virtual bool has_parts() const { return false; }      // whether `part` can say anything
  [[nodiscard]] virtual bool has_variables() const { return false; }  // the same of `variables`
  // Throws config::InputError, with file, line and column, for what is malformed and for what cannot be simulated.
  [[nodiscard]] virtual Draft read(const ImportRequest& request) const = 0;
};

using ImporterRegistry = config::Registry<Importer>;

}  // namespace rehearse::sim
