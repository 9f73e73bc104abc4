// Where the file of a job is.
#pragma once

#include <string>
#include <vector>

namespace rehearse::sim {

// Ready-made jobs stand in workloads/jobs, those of other kinds than training in folders below it that are named after the kind.
inline constexpr const char* jobs_folder = "workloads/jobs";

// A path (with a '/', ending in .yaml, or of a file that is there) as it stands; of the name of a ready-made job its file. "": neither.
[[nodiscard]] std::string job_file(const std::string& path_or_name);

// The names of all ready-made jobs, sorted.
[[nodiscard]] std::vector<std::string> job_names();

}  // namespace rehearse::sim
