// --set KEY=VALUE on a job.
#pragma once

#include <string_view>

#include "config/node.hpp"

namespace rehearse::sim {

// Sets a key of the job. Where the key leads into a part that the job only names (model, cluster, cluster.gpu, software), the part's
// content takes the name's place first, called "NAME (changed)"; its `like` takes the place of the name. Named parts are also looked up in
// `models` when given. Throws config::InputError.
void set_in_job(config::Node& job, std::string_view key, std::string_view value, const config::Node& models = {});

}  // namespace rehearse::sim
