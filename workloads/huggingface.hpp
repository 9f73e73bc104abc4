// Models from HuggingFace's config.json. Architectures are declared in huggingface.cpp, one row each.
#pragma once

#include <string>

#include "config/node.hpp"
#include "workloads/model.hpp"

namespace rehearse::workloads {

// `path` names a config.json, relative to the file it stands in. Without a name the model is called what the file says (_name_or_path),
// else after the file, config.json with its folder. The limits are those of the model reader; positions point into the file.
// Fields that no row uses (dropout, dtypes, sliding windows, the biases of single projections) do not change the shape and are ignored.
[[nodiscard]] Model read_huggingface(const config::Node& path, const std::string& name);

}  // namespace rehearse::workloads
