#include "sim/job/override.hpp"

#include "config/yaml_text.hpp"
#include "sim/job/parts.hpp"

namespace rehearse::sim {
namespace {

using config::Node;

bool leads_into(std::string_view key, std::string_view part) {
  return key.size() > part.size() && key.starts_with(part) && key[part.size()] == '.';
}

// `parent` with the content of the part that it names; as it was where it holds the content already.
void write_out(Node& parent, const PartKind& kind, const Node& models) {
  const auto field = parent.find(kind.what);
  if (!field || !field->is_scalar()) return;
  Part part = find_part(*field, kind, models);
  if (!part.node.is_map()) return;
  part.name += " (changed)";
  parent.set_child(kind.what, named(part));
}

// "" where the job names none, or nothing.
std::string vendor_of(const Node& job) {
  const auto field = job.find("cluster");
  if (!field) return "";
  Part cluster = find_part(*field, cluster_part);
  const auto vendor = take_gpu(cluster).node.find("vendor");
  return vendor ? vendor->as_string() : "";
}

// `software.like` of a job that only names its stack, or none: it names that one, and nothing of the other stays.
bool names_another(const Node& job, std::string_view key) {
  constexpr std::string_view suffix = ".like";
  if (!key.ends_with(suffix)) return false;
  const std::string_view part = key.substr(0, key.size() - suffix.size());
  if (part != "model" && part != "software" && part != "cluster" && part != "cluster.gpu") return false;
  const auto field = job.find_path(part);
  return !field || field->is_scalar();
}

}  // namespace

void set_in_job(Node& job, std::string_view key, std::string_view value, const Node& models) {
  if (names_another(job, key)) return set_in_job(job, key.substr(0, key.rfind('.')), value, models);
  if (leads_into(key, "model")) write_out(job, model_part, models);
  if (leads_into(key, "software")) {
    if (!job.find("software")) job.set("software", default_software(vendor_of(job)));
    write_out(job, software_part, {});
  }
  if (leads_into(key, "cluster")) write_out(job, cluster_part, {});
  if (leads_into(key, "cluster.gpu")) {
    Node cluster = job.at("cluster");
    if (cluster.is_map()) write_out(cluster, gpu_part, {});
    job.set_child("cluster", cluster);
  }
  job.set(key, value);
}

}  // namespace rehearse::sim
