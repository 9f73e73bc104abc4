// What a search may vary: keys of a job with the values to try, as a mixed-radix number. A point is one value of each.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/job/open_job.hpp"
#include "sim/job/plan_keys.hpp"
#include "sim/job/tune_keys.hpp"
#include "sim/tune/values.hpp"

namespace rehearse::sim {

struct Axis {
  struct Value {
    std::string text;                                 // as --set takes it
    Settings followers = {};                          // keys that go with it
    std::shared_ptr<const workloads::Workload> read;  // of a key of the plan: a workload that has this value, and its followers'
  };
  std::string key;
  std::vector<Value> values;
  std::vector<const PlanKey*> copies;  // of a key of the plan: it, and its followers
  [[nodiscard]] bool of_plan() const { return !copies.empty(); }
};

// What of a plan follows from the rest at every point, because neither the job nor the space says it.
struct Follows {
  bool dp = true, etp = false, schedule = false, shard_group = false, chunk_recompute = false;
  bool layers = false;  // the job's layers_per_stage where it has as many entries as there are chunks, else an even split
};

class Space {
 public:
  // Of a document as its user gave it, with the section `tune` read and `more` keys from the command line, which replace those of the
  // section. Throws config::InputError at what is wrong: an unknown key, no values, a value that the key refuses, more than 10^9 points.
  Space(config::Node given, std::string name, const TuneSpec& spec, const std::vector<GivenValues>& more);

  // Outermost first: keys that are none of the plan's (each combination of them is a job of its own, a base), then the plan's.
  [[nodiscard]] const std::vector<Axis>& axes() const { return axes_; }
  [[nodiscard]] std::size_t base_axes() const { return base_axes_; }
  [[nodiscard]] std::uint64_t size() const { return stride_.front(); }
  // How many points have the same values of the first `axes` axes.
  [[nodiscard]] std::uint64_t points_below(std::size_t axes) const { return stride_[axes]; }
  [[nodiscard]] std::size_t digit(std::uint64_t point, std::size_t axis) const {
    return static_cast<std::size_t>(point / stride_[axis + 1] % axes_[axis].values.size());
  }
  [[nodiscard]] const Follows& follows() const { return follows_; }

  // The job of a point apart from what its plan's axes say: read anew.
  [[nodiscard]] Job base_of(std::uint64_t point) const;
  // What --set has to set in the user's document for this point; `dp`: of its plan.
  [[nodiscard]] Settings settings(std::uint64_t point, int dp) const;
  // The job of a point, read and checked as a file with these settings would be.
  [[nodiscard]] Job job_of(std::uint64_t point, int dp) const;

  // The space as text, axis by axis: what files of the same search have in common.
  [[nodiscard]] std::string text() const;

 private:
  void read_axes(const TuneSpec& spec, const std::vector<GivenValues>& more);
  void sort_axes();
  void add_followers(const std::vector<Together>& said, const std::vector<Together>& of_name);
  void add_axis(const std::string& key, const config::Node& values, const Job& open, int most_gpus);
  void add_follower(const Together& pair);
  void settle_base(const Job& open);
  void read_plan_values(const Job& open);
  void add_up();
  [[noreturn]] void refuse_size(const std::string& message, std::size_t axes) const;

  config::Node given_, base_;  // the user's document; the same without what a search settles by itself
  std::string name_;
  std::vector<Axis> axes_;
  std::vector<config::Node> where_;  // [axis] for complaints
  std::size_t base_axes_ = 0;
  std::vector<std::uint64_t> stride_;  // [axes + 1]
  Follows follows_;
  [[nodiscard]] bool has_stated_split(std::uint64_t point) const;

  bool states_dp_ = false, states_etp_ = false, states_group_ = false;  // and it follows all the same
  int pp_ = 1, vpp_ = 1;                                                // where they are not searched
  std::size_t split_chunks_ = 0;
  std::string split_text_;
};

// The keys and values of a space that a word names, and what goes together in it.
struct NamedSpace {
  std::vector<GivenValues> axes;
  std::vector<Together> together;
};
inline constexpr std::string_view named_space_prefix = "space ";  // of the names that their positions have instead of a file's
[[nodiscard]] NamedSpace named_space(const std::string& name, const Job& open);

}  // namespace rehearse::sim
