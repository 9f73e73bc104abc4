// reference_step JOB [KEY=VALUE ...] [--fault FAULT ...]: prints the seconds of the simulated step by the reference run, and of the same
// with every link's rate changed by up to 1e-12 of it.
#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <string_view>

#include "reference_step.hpp"
#include "sim/engine/child_process.hpp"
#include "sim/memory/tune_chunks.hpp"

namespace {

rehearse::sim::JobRequest request(const std::vector<std::string_view>& words) {
  rehearse::sim::JobRequest request{std::string(words.at(0)), {}, {}, {}};
  for (std::size_t i = 1; i < words.size(); ++i) {
    if (words[i] == "--fault") {
      request.faults.emplace_back(words.at(++i));
    } else {
      const std::size_t equals = words[i].find('=');
      request.sets.emplace_back(words[i].substr(0, equals), words[i].substr(equals + 1));
    }
  }
  return request;
}

}  // namespace

using rehearse::sim::run_in_child;
using rehearse::tests::reference_step;

int main(int argc, char** argv) {
  try {
    const std::vector<std::string_view> words(argv + 1, argv + argc);
    const rehearse::sim::Job job = rehearse::sim::tuned(rehearse::sim::load_job(request(words)));
    const auto step_s = [&](double jitter) { return run_in_child([&] { return std::vector{reference_step(job, jitter)}; }).front(); };
    fmt::print("{} {}\n", step_s(0), step_s(1e-12));
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 2;
  }
}
