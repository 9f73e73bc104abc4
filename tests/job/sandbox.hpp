// The small data folder of these tests, so that messages that list names do not depend on the ready-made files.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

#include "places.hpp"
#include "sim/job/job.hpp"

namespace rehearse::sim {

// Paths in messages are relative to tests/job.
inline void enter_sandbox() {
  std::filesystem::current_path(REHEARSE_SOURCE_DIR "/tests/job");
  setenv("REHEARSE_DATA", "data", 1);
}

inline void use_ready_made_files() { setenv("REHEARSE_DATA", REHEARSE_SOURCE_DIR, 1); }

// A job that is fine as it stands, plus `more`.
inline std::string small_job(const std::string& more = "") {
  return "model: tiny\ncluster: pod\ngpus: 16\nbatch: {global: 32, micro: 1, sequence: 2048}\n" + more;
}

inline Job read_text(const std::string& text) { return read_job(config::Node::load_text(text, "job.yaml"), "job"); }

}  // namespace rehearse::sim
