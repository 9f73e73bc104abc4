#include "sim/memory/deepspeed_zero.hpp"

#include <algorithm>
#include <numeric>

#include "workloads/saved_weights.hpp"

namespace rehearse::sim {
namespace {

constexpr double norm_bytes = 8;  // gradients' norms are computed in fp64

double sum_of(const std::vector<double>& sizes) { return std::accumulate(sizes.begin(), sizes.end(), 0.0); }

// The model as it was loaded, a tensor each.
std::vector<AllocatorDevice::Block*> take_whole(const TrainedStage& stage, AllocatorDevice& device) {
  std::vector<AllocatorDevice::Block*> whole;
  whole.reserve(stage.parameters.size());
  for (const double size : stage.parameters) whole.push_back(device.take(size * bytes_of(stage.workload.precision.weights)));
  return whole;
}

}  // namespace

DeepSpeedZero::DeepSpeedZero(const TrainedStage& stage, const std::vector<double>& own, int shards, AllocatorDevice& device)
    : RankWeights(stage),
      stage_(stage),
      own_(own),
      device_(device),
      partitions_(stage.workload.optimizer.zero_stage == 2),
      all_(sum_of(stage.parameters)),
      share_(all_ / shards),
      bucket_(stage.habits.bucket_bytes / 2),
      weight_(bytes_of(stage.workload.precision.weights)) {}

// The model's tensors are joined on the device, where their segments stay (joins_on_gpu), or go to the host, and what was theirs back to
// the device, before the buffer is made. initialize_optimizer_states has one of gradients for a while.
void DeepSpeedZero::build() {
  const double exact = bytes_of(stage_.workload.precision.optimizer);
  std::vector<Block*> whole;
  if (stage_.habits.joins_on_gpu) whole = take_whole(stage_, device_);
  device_.take(all_ * weight_);
  device_.give(whole);
  Block* clone = device_.take(share_ * weight_);
  device_.take(share_ * exact);
  device_.give(clone);
  Block* gradients = device_.take(share_ * exact);
  device_.give(gradients);
}

void DeepSpeedZero::begin(Pass pass) {
  pass_ = pass;
  in_bucket_ = 0;
  next_whole_ = 0;
  for (int i = 0; i < 2; ++i) buckets_.push_back(device_.take(bucket_));
}

void DeepSpeedZero::add_gradient(Block* gradient, double bytes) {
  if (!partitions_ && !pass_.first) {  // added to what is there
    device_.give(gradient);
    gradient = whole_[next_whole_];
    if (reduces()) whole_[next_whole_] = nullptr;
    ++next_whole_;
    if (!reduces()) return;
  } else if (!reduces()) {
    whole_.push_back(gradient);
    return;
  }
  if (in_bucket_ + bytes > bucket_) reduce();
  in_bucket_ += bytes;
  if (bytes > bucket_) {
    waiting_.push_back(gradient);
  } else {
    device_.give(gradient);
  }
}

// Slices that go to several ranks are joined; the rank's own are copied out.
void DeepSpeedZero::reduce() {
  if (share_ < all_) {
    Block* joined = device_.take(device_.request(in_bucket_, reduce_stream));
    device_.give(joined);
  }
  if (made_ == nullptr) made_ = device_.take(device_.request(share_ * weight_, reduce_stream));
  device_.give(waiting_);
  in_bucket_ = 0;
}

void DeepSpeedZero::end_backward() {
  if (reduces()) {
    reduce();
    if (sum_ == nullptr) {
      sum_ = std::exchange(made_, nullptr);
    } else {
      device_.give(made_);
    }
    whole_.clear();
  }
  device_.give(buckets_);
}

void DeepSpeedZero::update(bool first_step) {
  const double exact = bytes_of(stage_.workload.precision.optimizer);
  for (const double size : own_) {
    Block* norm = device_.take(size * norm_bytes);
    device_.give(norm);
  }
  Block* flat = device_.take(share_ * weight_);
  Block* wide = device_.take(share_ * exact);
  device_.give(flat);
  device_.give(sum_);
  if (first_step) take_moments({share_}, bytes_of(stage_.workload.precision.moments), device_);
  device_.give(wide);
}

DeepSpeedZero3::DeepSpeedZero3(const TrainedStage& stage, int shards, AllocatorDevice& device)
    : RankWeights(stage),
      stage_(stage),
      device_(device),
      shards_(shards),
      all_(sum_of(stage.parameters)),
      bucket_(stage.habits.zero3_bucket_bytes.value_or(stage.habits.bucket_bytes)),
      weight_(bytes_of(stage.workload.precision.weights)),
      gathered_(stage.kind_of.front().size()),
      saved_(gathered_.size()) {
  double behind = all_;
  for (std::size_t unit = 0; unit < gathered_.size(); ++unit) {
    behind -= sum_of(stage.tensors_of_unit(unit));
    behind_.push_back(behind);
  }
  const double most = stage.habits.update_at_once.value_or(all_);
  double group = 0;
  for (const double size : stage.parameters) {
    group += size / shards_;
    if (group < most) continue;
    groups_.push_back(group);
    group = 0;
  }
  if (group > 0) groups_.push_back(group);
}

// The shard of the weights is one buffer, that of their gradients another, on the host where the optimizer is.
void DeepSpeedZero3::build() {
  if (stage_.habits.loads_whole) cut_whole();
  device_.take(all_ / shards_ * weight_);
  const bool on_host = stage_.workload.optimizer.on_cpu;
  if (!on_host) take_states();
  device_.take(bucket_);
  if (!on_host) device_.take(all_ / shards_ * weight_);
}

// The shards go to the host and come back as one buffer, and the cache is emptied between (defragment in stage3.py).
void DeepSpeedZero3::cut_whole() {
  std::vector<Block*> whole = take_whole(stage_, device_), cut;
  for (std::size_t i = 0; i < whole.size(); ++i) {
    cut.push_back(device_.take(stage_.parameters[i] / shards_ * weight_));
    device_.give(whole[i]);
  }
  device_.give(cut);
  device_.empty_cache();
}

// The optimizer's first step is taken at once, on gradients of the largest group's size.
void DeepSpeedZero3::take_states() {
  const double exact = bytes_of(stage_.workload.precision.optimizer);
  for (const double group : groups_) {
    Block* clone = device_.take(group * weight_);
    device_.take(group * exact);
    device_.give(clone);
  }
  Block* gradients = device_.take(*std::ranges::max_element(groups_) * exact);
  take_moments(groups_, bytes_of(stage_.workload.precision.moments), device_);
  device_.give(gradients);
}

// use: among the units' forwards and then their backwards, the last unit's first. Those of the use at hand whatever there is already.
void DeepSpeedZero3::gather_from(std::size_t use) {
  if (shards_ < 2) return;
  const std::size_t units = gathered_.size();
  for (std::size_t next = use; next < 2 * units; ++next) {
    const std::size_t unit = next < units ? next : 2 * units - 1 - next;
    if (!gather(unit, next == use)) return;
    if (tied() && unit + 1 == units && !gather(0, next == use)) return;
  }
}

// False where what is not needed yet would be too much.
bool DeepSpeedZero3::gather(std::size_t unit, bool needed) {
  const std::vector<double>& tensors = stage_.tensors_of_unit(unit);
  while (gathered_[unit].size() < tensors.size()) {
    const double size = tensors[gathered_[unit].size()];
    if (!needed && live_ + size > stage_.habits.live_parameters) return false;
    gathered_[unit].push_back(device_.take(device_.request(size * weight_, gather_stream, compute_as_user)));
    live_ += size;
  }
  return true;
}

void DeepSpeedZero3::release(std::size_t unit) {
  const std::vector<double>& tensors = stage_.tensors_of_unit(unit);
  for (std::size_t i = 0; i < gathered_[unit].size(); ++i) live_ -= tensors[i];
  device_.give(gathered_[unit]);
}

bool DeepSpeedZero3::saves(std::size_t unit) const {
  const workloads::Unit& what = stage_.program.chunks.front()[unit];
  return what.kind == workloads::UnitKind::layer && workloads::saves_gathered(stage_.workload, stage_.habits, what.recomputed);
}

// Kept where its backward comes soon (stage3_max_reuse_distance); a table that the head shares where that comes.
void DeepSpeedZero3::after_forward(std::size_t unit) {
  const bool table = tied() && unit == 0;
  if (table ? !releases_table() : 2 * behind_[unit] <= stage_.habits.live_parameters) return;
  if (!saves(unit)) return release(unit);
  saved_[unit].swap(gathered_[unit]);
  for (const double size : stage_.tensors_of_unit(unit)) live_ -= size;
}

void DeepSpeedZero3::leave(std::size_t unit) {
  release(unit);
  device_.give(saved_[unit]);
  if (tied() && unit + 1 == gathered_.size() && releases_table()) release(0);
}

// Copied into the bucket in the stream that reduces.
void DeepSpeedZero3::add_gradient(Block* gradient, double bytes) {
  device_.use(gradient, reduce_stream);
  if (in_bucket_ + bytes > bucket_) reduce();
  in_bucket_ += bytes;
  ++in_bucket_now_;
  if (bytes > bucket_) {
    waiting_ = gradient;
  } else {
    device_.give(gradient);
  }
}

// Several gradients are joined rank by rank (reduce_scatter_coalesced).
void DeepSpeedZero3::reduce() {
  if (in_bucket_now_ > 1) {
    Block* parts = device_.take(device_.request(in_bucket_, reduce_stream));
    device_.give(parts);
  }
  device_.give(waiting_);
  in_bucket_ = 0;
  in_bucket_now_ = 0;
}

void DeepSpeedZero3::update(bool /*first_step*/) {
  if (stage_.workload.optimizer.on_cpu) return;
  for (const double size : stage_.parameters) {
    Block* norm = device_.take(size / shards_ * norm_bytes);
    device_.give(norm);
  }
  for (const double group : groups_) {
    Block* flat = device_.take(group * weight_);
    Block* wide = device_.take(group * bytes_of(stage_.workload.precision.optimizer));
    device_.give(flat);
    device_.give(wide);
  }
}

}  // namespace rehearse::sim
