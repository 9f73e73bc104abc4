#include "sim/wholejob/checkpoint_times.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "sim/job/refusal.hpp"
#include "workloads/unit_memory.hpp"

namespace rehearse::sim {
namespace {

enum class Way { save, load };

int nodes_of(const Job& job) { return (job.system.gpus + job.system.cluster.gpus_per_node - 1) / job.system.cluster.gpus_per_node; }

double effective_or_refuse(const Job& job, double bytes_per_s, std::string_view where, std::string_view key) {
  if (bytes_per_s > 0) return bytes_per_s;
  const std::string why =
      fmt::format("cluster {} has no {}, so that checkpoint.{} does not follow from it", job.system.cluster.name, where, key);
  const std::string hint = fmt::format("give checkpoint.{}, or choose another checkpoint.to", key);
  if (!job.given.find("checkpoint")) throw config::InputError(why, hint);
  refuse(job.given, fmt::format("checkpoint.{}", key), why, hint);
}

// All nodes write their shares at once. A shared file system divides its bandwidth among them, which takes as long as one writing all of
// it, unless the nodes' ports are the narrower place; local disks work side by side.
double network_s(const Job& job, double bytes) {
  const double ports = job.system.cluster.rail_bytes_per_s() * job.system.cluster.rails_per_node() * nodes_of(job);
  return ports > 0 ? bytes / ports : 0;
}

double host_copy_s(const Job& job, double bytes) { return bytes / job.system.gpus / job.system.cluster.host.effective_bytes_per_s(); }

double store_s(const Job& job, Store store, double bytes, Way way, std::string_view key) {
  const topology::StorageSpec& storage = job.system.cluster.storage;
  const bool save = way == Way::save;
  if (store == Store::disk) {
    const double disk = effective_or_refuse(job, save ? storage.disk_write_bytes_per_s : storage.disk_read_bytes_per_s, "local disks", key);
    return bytes / nodes_of(job) / disk;
  }
  if (store == Store::shared) {
    const double shared =
        effective_or_refuse(job, save ? storage.shared_write_bytes_per_s : storage.shared_read_bytes_per_s, "shared storage", key);
    return std::max(bytes / shared, network_s(job, bytes));
  }
  // Host memory of the own node, and of copies - 1 others over the network. Read back from the own node, or over the network.
  const int remote = save ? job.whole.checkpoint.copies - 1 : 1;
  return std::max(host_copy_s(job, bytes), remote * network_s(job, bytes));
}

Store settled(const Job& job) {
  if (job.whole.checkpoint.to != Store::automatic) return job.whole.checkpoint.to;
  return job.system.cluster.storage.shared_write_bytes_per_s > 0 ? Store::shared : Store::disk;
}

double given_or(const std::optional<double>& given, const auto& computed) { return given ? *given : computed(); }

void add_backup(const Job& job, CheckpointTimes& times) {
  const auto& backup = job.whole.checkpoint.backup;
  if (!backup) return;
  const double save = given_or(backup->save_s, [&] { return store_s(job, backup->to, times.bytes, Way::save, "save_time"); });
  times.backup_load_s = given_or(backup->load_s, [&] { return store_s(job, backup->to, times.bytes, Way::load, "load_time"); });
  (job.whole.checkpoint.async ? times.backup_background_s : times.backup_blocking_s) = save;
}

}  // namespace

double checkpoint_bytes(const Job& job) {
  if (job.whole.checkpoint.size_bytes) return *job.whole.checkpoint.size_bytes;
  const workloads::Precision& precision = job.workload.precision;
  if (job.workload.lora.on()) {
    return workloads::adapter_parameters(job.workload) *
           (bytes_of(job.workload.trained_weights()) + bytes_of(precision.optimizer) + 2 * bytes_of(precision.moments));
  }
  const workloads::ParameterCount count = workloads::count_parameters(job.workload.model);
  const double moments = workloads::moment_bytes_per_parameter(job.workload, {count.total, 0, count.total - count.embedding - count.head});
  return count.total * (bytes_of(precision.weights) + bytes_of(precision.optimizer) + moments);
}

CheckpointTimes checkpoint_times(const Job& job) {
  const CheckpointSpec& spec = job.whole.checkpoint;
  CheckpointTimes times;
  times.bytes = checkpoint_bytes(job);
  times.store = settled(job);
  times.save_s = given_or(spec.save_s, [&] { return store_s(job, times.store, times.bytes, Way::save, "save_time"); });
  times.load_s = given_or(spec.load_s, [&] { return store_s(job, times.store, times.bytes, Way::load, "load_time"); });
  times.blocking_s = times.save_s;
  if (spec.async) {
    times.blocking_s = given_or(spec.stall_s, [&] { return host_copy_s(job, times.bytes); });
    times.background_s = times.save_s;
  }
  add_backup(job, times);
  return times;
}

}  // namespace rehearse::sim
