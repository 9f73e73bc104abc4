// tests/job/malformed/TOPIC.txt: malformed jobs and what is said of them.
//
//   === gpus-is-text
//   model: tiny
//   gpus: many
//   --- is refused
//   job.yaml:2:7: error: gpus must be a whole number, not 'many'
//       2 | gpus: many
//         |       ^
//
// An empty line parts a message from the next job. \xNN stands for that byte; a backslash at a job's end for no end of the line.
#pragma once

#include <string>
#include <vector>

namespace rehearse::sim {

struct MalformedJob {
  std::string topic, name, job, message;
};

// All of them, by topic in the order of the files.
[[nodiscard]] std::vector<MalformedJob> malformed_jobs();

}  // namespace rehearse::sim
