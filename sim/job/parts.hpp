// The parts of a job that have files of their own: model, cluster, GPU, software.
#pragma once

#include <string>
#include <string_view>

#include "config/node.hpp"

namespace rehearse::sim {

struct Part {
  std::string name;
  config::Node node;  // without the key `name`
};

struct PartKind {
  std::string_view what;    // "model"
  std::string_view folder;  // of the ready-made ones, below data_dir()
};

inline constexpr PartKind model_part{"model", "workloads/models"};
inline constexpr PartKind cluster_part{"cluster", "platforms/clusters"};
inline constexpr PartKind gpu_part{"gpu", "platforms/gpus"};
inline constexpr PartKind software_part{"software", "platforms/software"};

// The stack of jobs that name none, on GPUs of this vendor: XLA's on TPUs, which no other runs on.
[[nodiscard]] constexpr const char* default_software(std::string_view vendor) {
  if (vendor == "google") return "maxtext";
  return vendor == "huawei" ? "mindspeed" : "megatron-core";
}
inline constexpr const char* default_software_words = "megatron-core; maxtext on TPUs, mindspeed on Ascend";

// The key of a part that names another one, and the only one that is read before the part's own.
inline constexpr const char* like = "like";

struct JobParts {
  Part model, cluster, gpu, software;
};

// A part given as a mapping (its name: the key `name`), as a path (with a '/' or ending in .yaml, relative to the file it stands in), or as
// the name of a ready-made file. A mapping or file with the key `like` has all of the part that it names (in the same three ways but a
// mapping) that it does not state itself. `more` holds further named parts, which come first.
[[nodiscard]] Part find_part(const config::Node& field, const PartKind& kind, const config::Node& more = {});

// The cluster's GPU, wherever it is described; in the cluster's own description its name is left.
[[nodiscard]] Part take_gpu(Part& cluster);

// The part as a mapping with its name, as a job may hold it.
[[nodiscard]] config::Node named(const Part& part);

// A ready-made part. Throws InputError that lists the known names.
[[nodiscard]] Part ready_made(const PartKind& kind, const std::string& name);

}  // namespace rehearse::sim
