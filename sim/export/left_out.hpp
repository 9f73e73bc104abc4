// What a file in another program's format does not say of a job: the file is read back by our own importer, and what comes out otherwise
// than the job is what it left out.
#pragma once

#include <string>
#include <vector>

#include "sim/job/job.hpp"

namespace rehearse::sim {

struct LeftOut {
  std::string key, value;  // as --set takes them
};

struct ReadBack {
  // In the order in which an import takes them: with all of them it gives the job.
  std::vector<LeftOut> left_out;
  // Keys that come out otherwise even so, which the file says in a way that no setting takes back.
  std::vector<std::string> otherwise;
};

// `text` is the file, `format` the import format. A model alone (hf) is compared with the job's model.
[[nodiscard]] ReadBack read_back(const Job& job, const std::string& format, const std::string& text);

}  // namespace rehearse::sim
