// The readers, each behind one entry that takes any bytes. One reader, one .cpp in targets/ with its registration. The same entries are
// driven by libFuzzer (libfuzzer/entry.cpp, built with REHEARSE_FUZZ; scripts/fuzz) and by a test with what was found (regressions/).
#pragma once

#include <string>
#include <string_view>

#include "config/registry.hpp"

namespace rehearse::fuzz {

class Target {
 public:
  static constexpr std::string_view kind = "fuzz target";
  virtual ~Target() = default;

  // Reads `input` as this reader reads a file. Throws config::InputError where it refuses; anything else thrown is a bug, Nonsense too.
  virtual void read(const std::string& input) const = 0;
};

using TargetRegistry = config::Registry<Target>;

// An accepted input whose answer cannot be true.
class Nonsense : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

// Calls the target. Refusals are fine; everything else is let through.
void read_or_refuse(const Target& target, const std::string& input);

// A file with this content in a folder of this process, for readers that take a path; overwritten by the next call with the same name.
[[nodiscard]] std::string scratch_file(const std::string& name, const std::string& content);

}  // namespace rehearse::fuzz
