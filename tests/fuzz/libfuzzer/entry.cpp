// One target under libFuzzer: REHEARSE_FUZZ_TARGET=job build/fuzz/tests/fuzz/fuzz_readers CORPUS.
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "tests/fuzz/target.hpp"

namespace {

const rehearse::fuzz::Target& chosen() {
  const char* name = std::getenv("REHEARSE_FUZZ_TARGET");
  try {
    return rehearse::fuzz::TargetRegistry::get(name != nullptr ? name : "");
  } catch (const rehearse::config::InputError& unknown) {
    std::fprintf(stderr, "REHEARSE_FUZZ_TARGET: %s\n", unknown.what());
    std::exit(2);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const rehearse::fuzz::Target& target = chosen();
  rehearse::fuzz::read_or_refuse(target, std::string(reinterpret_cast<const char*>(data), size));
  return 0;
}
