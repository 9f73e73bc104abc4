// The last steps of an import: what the command line gives, what is still open, and what the document's own reader says.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "sim/import/draft.hpp"

namespace rehearse::sim {

struct FinishedImport {
  config::Node document;
  std::string summary;  // "job: 70.55 billion parameters on 256 x h100-sxm5-80g"
};

// Takes keys of the document by their dotted paths; those that name a part (cluster) go before those that change one. Throws InputError for
// what is still missing, all of it at once, and for what the reader of jobs, models or clusters refuses.
[[nodiscard]] FinishedImport finish_import(Draft draft, const std::vector<std::pair<std::string, std::string>>& settings,
                                           const std::string& name);

}  // namespace rehearse::sim
