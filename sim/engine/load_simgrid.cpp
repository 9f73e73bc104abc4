// SimGrid's machine, from wherever it is: linked into the program (tests, benchmarks, programs on the library), or in a module that is
// loaded when it is first asked for. Debian's SimGrid brings ns-3, and to load both takes 30 ms: more than a prediction.
#include <dlfcn.h>
#include <fmt/format.h>

#include <filesystem>

#include "config/data_dir.hpp"
#include "config/input_error.hpp"
#include "sim/engine/machine_impl.hpp"

extern "C" [[gnu::weak]] rehearse::sim::Machine::Impl* rehearse_simgrid_machine();

namespace rehearse::sim {
namespace {

using Make = Machine::Impl* (*)();

Make loaded() {
  if (&rehearse_simgrid_machine != nullptr) return &rehearse_simgrid_machine;
  const std::filesystem::path installed = (config::install_prefix() / REHEARSE_SIMGRID_INSTALLED).lexically_normal();
  void* module = dlopen(exists(installed) ? installed.c_str() : REHEARSE_SIMGRID_BUILT, RTLD_NOW | RTLD_LOCAL);
  void* found = module != nullptr ? dlsym(module, "rehearse_simgrid_machine") : nullptr;
  if (found == nullptr) {
    throw config::InputError(fmt::format("SimGrid cannot be loaded: {}", dlerror()),
                             fmt::format("install the whole program; its module for SimGrid belongs to '{}'", installed.string()));
  }
  return reinterpret_cast<Make>(found);
}

Make maker() {
  static const Make make = loaded();
  return make;
}

}  // namespace

void load(Solver solver) {
  if (solver == Solver::simgrid) static_cast<void>(maker());
}

std::unique_ptr<Machine::Impl> simgrid_machine() { return std::unique_ptr<Machine::Impl>(maker()()); }

}  // namespace rehearse::sim
