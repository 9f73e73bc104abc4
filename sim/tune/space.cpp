#include "sim/tune/space.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "sim/job/job_keys.hpp"
#include "sim/job/override.hpp"
#include "workloads/stage_program.hpp"

namespace rehearse::sim {
namespace {

using config::InputError;
using config::Node;

constexpr double most_points = 1e9;
constexpr std::uint64_t most_space_bases = 10'000;

// A complaint about a value that was made from a word points to the word.
[[noreturn]] void refuse_value(const Node& where, const std::string& key, const InputError& error) {
  if (error.where().line > 0 && !error.where().file.starts_with("tune.space")) throw error;
  where.fail(fmt::format("{}: {}", key, error.message()), error.hint());
}

// Whether a condition holds, "> 1", of a value.
bool holds(const std::string& relation, double left, double right) {
  if (relation == ">") return left > right;
  if (relation == ">=") return left >= right;
  if (relation == "<") return left < right;
  if (relation == "<=") return left <= right;
  if (relation == "==") return left == right;
  return left != right;
}

std::vector<std::string> words_of_text(const std::string& text) {
  std::vector<std::string> words{""};
  for (const char c : text) {
    if (c != ' ') {
      words.back() += c;
    } else if (!words.back().empty()) {
      words.emplace_back();
    }
  }
  if (words.back().empty()) words.pop_back();
  return words;
}

std::optional<double> number_in(const std::string& text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc() && end == text.data() + text.size()) return number;
  return {};
}

// What a key that follows says where the one it follows has this value, one of `values`.
std::string follower_value(const Together& pair, const std::vector<std::string>& words, const std::string& value, const Node& values) {
  if (words.size() == 1) return value;
  const auto left = number_in(value), right = number_in(words[2]);
  if (!right) pair.where.fail(fmt::format("{} is no number to compare with", config::shown(words[2])), "write \"parallel.tp > 1\"");
  if (!left)
    values.fail(fmt::format("{}: {} is no number, and {} follows it by {}", words[0], config::shown(value), pair.key, pair.follows));
  const bool yes = holds(words[1], *left, *right);
  return words.size() == 3 ? (yes ? "true" : "false") : words[yes ? 4 : 6];
}

// KEY; KEY > NUMBER; KEY > NUMBER ? VALUE : OTHER.
std::vector<std::string> condition_of(const Together& pair) {
  const std::vector<std::string> words = words_of_text(pair.follows);
  constexpr std::array relations{">", ">=", "<", "<=", "==", "!="};
  const bool chooses = words.size() == 7 && words[3] == "?" && words[5] == ":";
  const bool condition = (words.size() == 3 || chooses) && std::ranges::find(relations, words[1]) != relations.end();
  if (words.size() == 1 || condition) return words;
  pair.where.fail(fmt::format("{} neither is a key nor a condition on one", config::shown(pair.follows)), "write \"parallel.tp > 1\"");
}

// The plan that the job has is a point of every space that a word names.
void with_own_values(NamedSpace& space, const Job& open) {
  for (GivenValues& axis : space.axes) {
    const std::string own = open.resolved.value(axis.key);
    std::vector<Node> values = axis.values.is_sequence() ? axis.values.items() : std::vector<Node>{axis.values};
    const auto has = [&](const SpaceValue& value) { return value.text == own; };
    if (own.empty() || std::ranges::any_of(values_of(axis.key, axis.values, open, open.system.gpus), has)) continue;
    values.push_back(Node::load_text(own, std::string(named_space_prefix) + "of the job"));
    axis.values = Node::list(values);
  }
}

Node without_key_of(const Node& document, const std::string& section, const std::string& key) {
  const auto part = document.find(section);
  if (!part || !part->is_map() || !part->find(key)) return document;
  Node out = document;
  out.set_child(section, part->without(key));
  return out;
}

// The group that a job has which leaves it out, as resolved jobs state it.
bool shards_over_all(const Job& open) {
  workloads::Workload workload = open.workload;
  workloads::Parallel& p = workload.parallel;
  p.dp = std::max(1, open.system.gpus / (p.tp * p.cp * p.pp));
  return workload.optimizer.shard_group == workloads::replica_sync(workload).ranks;
}

// In the place of what was given for the same key before.
void put_axis(NamedSpace& space, GivenValues axis) {
  const auto same = std::ranges::find(space.axes, axis.key, &GivenValues::key);
  if (same == space.axes.end()) {
    space.axes.push_back(std::move(axis));
  } else {
    *same = std::move(axis);
  }
}

// The number of GPUs may be searched, and the job leave it open.
std::optional<Node> sizes_of(const NamedSpace& space) {
  const auto sizes = std::ranges::find(space.axes, "gpus", &GivenValues::key);
  return sizes == space.axes.end() ? std::nullopt : std::optional(sizes->values);
}
Job job_of_any_size(Node document, const std::string& name, bool searched) {
  if (searched && !document.find("gpus")) document.set("gpus", "1");
  return read_open_job(searched ? without_key_of(document, "parallel", "dp") : document, name);
}
int largest_of(const Node& sizes, const Job& open) {
  int most = 0;
  for (const SpaceValue& value : values_of("gpus", sizes, open, 0))
    most = std::max(most, static_cast<int>(value.node.as_int(1, 1'000'000)));
  return most;
}

// A space that a word names, where what was asked for beside it holds.
NamedSpace space_by_name(const std::string& name, const Job& open, NamedSpace asked) {
  NamedSpace space = named_space(name, open);
  with_own_values(space, open);
  for (GivenValues& axis : asked.axes) put_axis(space, std::move(axis));
  return space;
}

}  // namespace

Space::Space(Node given, std::string name, const TuneSpec& spec, const std::vector<GivenValues>& more)
    : given_(std::move(given)), name_(std::move(name)) {
  given_ = given_.without("tune");
  base_ = given_;
  read_axes(spec, more);
}

void Space::read_axes(const TuneSpec& spec, const std::vector<GivenValues>& more) {
  const bool by_name = !spec.space || !spec.space.is_map();
  NamedSpace asked;
  if (!by_name) {
    for (const std::string& key : spec.space.keys()) put_axis(asked, {key, *spec.space.find(key)});
  }
  for (const GivenValues& axis : more) put_axis(asked, axis);
  const std::optional<Node> sizes = sizes_of(asked);
  const Job open = job_of_any_size(given_, name_, sizes.has_value());
  if (by_name) asked = space_by_name(spec.space ? spec.space.as_string() : "default", open, std::move(asked));
  const int most_gpus = sizes ? largest_of(*sizes, open) : open.system.gpus;
  for (const GivenValues& axis : asked.axes) add_axis(axis.key, axis.values, open, most_gpus);
  sort_axes();
  add_followers(spec.together, asked.together);
  settle_base(open);
  read_plan_values(read_open_job(base_, name_));
  add_up();
}

void Space::sort_axes() {
  std::vector<std::size_t> order(axes_.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  const auto rank = [&](std::size_t i) {
    const PlanKey* key = plan_key(axes_[i].key);
    return key == nullptr ? (axes_[i].key == "gpus" ? std::pair{0, std::size_t{0}} : std::pair{1, i}) : std::pair{2, plan_key_rank(*key)};
  };
  std::ranges::sort(order, {}, rank);
  std::vector<Axis> sorted;
  std::vector<Node> where;
  for (const std::size_t i : order) {
    sorted.push_back(std::move(axes_[i]));
    where.push_back(where_[i]);
  }
  axes_ = std::move(sorted);
  where_ = std::move(where);
  base_axes_ = static_cast<std::size_t>(std::ranges::count_if(axes_, [](const Axis& axis) { return !axis.of_plan(); }));
}

// Of what goes together in a space that a word names, what is searched and nobody said otherwise.
void Space::add_followers(const std::vector<Together>& said, const std::vector<Together>& of_name) {
  const auto searched = [&](const std::string& key) { return std::ranges::find(axes_, key, &Axis::key) != axes_.end(); };
  for (const Together& pair : said) add_follower(pair);
  for (const Together& pair : of_name) {
    const bool known = searched(pair.key) || std::ranges::find(said, pair.key, &Together::key) != said.end();
    if (searched(condition_of(pair).front()) && !known) add_follower(pair);
  }
}

void Space::add_axis(const std::string& key, const Node& values, const Job& open, int most_gpus) {
  for (const Axis& other : axes_) {
    const auto below = [](const std::string& one, const std::string& of) { return one.starts_with(of + "."); };
    if (below(key, other.key) || below(other.key, key))
      values.fail_at_key(fmt::format("{} and {} are one inside the other", key, other.key));
  }
  if (key == "tune" || key.starts_with("tune.") || key == "name") values.fail_at_key(fmt::format("{} is no part of a plan", key));
  Axis axis{.key = key, .values = {}, .copies = {}};
  for (const SpaceValue& value : values_of(key, values, open, most_gpus)) axis.values.push_back({value.text, {}, nullptr});
  if (const PlanKey* of_plan = plan_key(key)) axis.copies.push_back(of_plan);
  axes_.push_back(std::move(axis));
  where_.push_back(values);
}

void Space::add_follower(const Together& pair) {
  const std::vector<std::string> words = condition_of(pair);
  const auto source = std::ranges::find(axes_, words.front(), &Axis::key);
  if (std::ranges::find(axes_, pair.key, &Axis::key) != axes_.end())
    pair.where.fail(fmt::format("{} is searched itself, so it follows no other key", pair.key));
  if (source == axes_.end())
    pair.where.fail(fmt::format("{} is not searched, so nothing follows it", words.front()), "give values for it in tune.space");
  const PlanKey* of_plan = plan_key(pair.key);
  if (source->of_plan() && of_plan == nullptr) {
    pair.where.fail(fmt::format("{} cannot follow {}: it is no key of the plan", pair.key, source->key));
  }
  for (const Axis& axis : axes_) {
    for (const auto& [key, value] : axis.values.front().followers) {
      if (key == pair.key) pair.where.fail(fmt::format("{} follows {} already", key, axis.key));
    }
  }
  const Node& values = where_[static_cast<std::size_t>(source - axes_.begin())];
  for (Axis::Value& value : source->values) value.followers.emplace_back(pair.key, follower_value(pair, words, value.text, values));
  if (source->of_plan()) source->copies.push_back(of_plan);
}

// What the search settles itself leaves the document: dp follows from the GPUs.
void Space::settle_base(const Job& open) {
  const auto searched = [&](std::string_view key) {
    return std::ranges::any_of(axes_, [&](const Axis& axis) {
      const auto follows = [&](const auto& setting) { return setting.first == key; };
      return axis.key == key || std::ranges::any_of(axis.values.front().followers, follows);
    });
  };
  const auto said = [&](std::string_view key) { return searched(key) || given_.find_path(key).has_value(); };
  states_dp_ = given_.find_path("parallel.dp").has_value();
  states_etp_ = !searched("parallel.etp") && given_.find_path("parallel.etp") && !open.workload.model.moe;
  states_group_ = !searched("optimizer.shard_group") && given_.find_path("optimizer.shard_group") && shards_over_all(open);
  follows_ = {.dp = !searched("parallel.dp"),
              .etp = states_etp_ || !said("parallel.etp"),
              .schedule = !said("schedule"),
              .shard_group = states_group_ || !said("optimizer.shard_group"),
              .chunk_recompute = !said("moe.chunk_recompute")};
  const bool new_pipeline = searched("parallel.pp") || searched("parallel.vpp") || searched("schedule");
  follows_.layers = given_.find_path("parallel.layers_per_stage") && new_pipeline && !searched("parallel.layers_per_stage");
  if (follows_.layers) split_text_ = config::one_line(*given_.find_path("parallel.layers_per_stage"));
  split_chunks_ = open.workload.parallel.layers_per_stage.size();
  pp_ = open.workload.parallel.pp;
  vpp_ = open.workload.parallel.vpp;
  if (!searched("gpus")) base_.set("gpus", std::to_string(open.system.gpus));
  if (searched("gpus") && !base_.find("gpus")) base_.set("gpus", axes_.front().values.front().text);
  base_ = without_key_of(base_, "parallel", "dp");
  if (states_etp_) base_ = without_key_of(base_, "parallel", "etp");
  if (states_group_) base_ = without_key_of(base_, "optimizer", "shard_group");
}

void Space::read_plan_values(const Job& open) {
  const JobDocument document{.job = open, .parts = *open.parts};
  for (std::size_t i = 0; i < axes_.size(); ++i) {
    for (std::size_t v = 0; v < axes_[i].values.size(); ++v) {
      Axis::Value& value = axes_[i].values[v];
      Settings all{{axes_[i].key, value.text}};
      all.insert(all.end(), value.followers.begin(), value.followers.end());
      JobDocument read = document;
      try {
        for (const auto& [key, text] : all) {
          if (axes_[i].of_plan()) job_keys().read_at(key, Node::load_text(text, "tune.space." + key), read);
        }
      } catch (const InputError& error) {
        const bool listed = where_[i].is_sequence() && where_[i].items().size() == axes_[i].values.size();
        refuse_value(listed ? where_[i].items()[v] : where_[i], axes_[i].key, error);
      }
      if (axes_[i].of_plan()) value.read = std::make_shared<const workloads::Workload>(std::move(read.job.workload));
    }
  }
}

void Space::add_up() {
  double points = 1;
  for (const Axis& axis : axes_) points *= static_cast<double>(axis.values.size());
  if (points > most_points) {
    std::vector<std::string> sizes;
    for (const Axis& axis : axes_) sizes.push_back(fmt::format("{} {}", axis.key, axis.values.size()));
    refuse_size(fmt::format("the space has {:.3g} points, more than {:.0e} ({})", points, most_points, fmt::join(sizes, ", ")),
                axes_.size());
  }
  stride_.assign(axes_.size() + 1, 1);
  for (std::size_t i = axes_.size(); i > 0; --i) stride_[i - 1] = stride_[i] * axes_[i - 1].values.size();
  const std::uint64_t bases = stride_.front() / stride_[base_axes_];
  if (bases > most_space_bases)
    refuse_size(fmt::format("the keys that are none of the plan's make {} jobs, more than {}", bases, most_space_bases), base_axes_);
  for (std::uint64_t base = 0; base < bases; ++base) static_cast<void>(base_of(base * stride_[base_axes_]));
}

// Where the most values were given, of the first so many axes; those of a space that a word names were not.
void Space::refuse_size(const std::string& message, std::size_t axes) const {
  const Node* widest = nullptr;
  std::size_t values = 0;
  for (std::size_t i = 0; i < axes; ++i) {
    if (axes_[i].values.size() <= values || where_[i].where().file.starts_with(named_space_prefix)) continue;
    widest = &where_[i];
    values = axes_[i].values.size();
  }
  const char* const hint = "give fewer values, or cut it by a key of which each search takes one value";
  if (widest == nullptr) throw InputError(message, hint);
  widest->fail(message, hint);
}

Job Space::base_of(std::uint64_t point) const {
  Node node = base_;
  std::size_t axis = 0;
  try {
    for (; axis < base_axes_; ++axis) {
      const Axis::Value& value = axes_[axis].values[digit(point, axis)];
      set_in_job(node, axes_[axis].key, value.text);
      for (const auto& [key, text] : value.followers) set_in_job(node, key, text);
    }
    node = without_key_of(node, "parallel", "dp");
    return read_open_job(node, name_);
  } catch (const InputError& error) {
    if (error.where().file.starts_with("--set") && base_axes_ > 0)
      where_[std::min(axis, base_axes_ - 1)].fail(error.message(), error.hint());
    throw;
  }
}

bool Space::has_stated_split(std::uint64_t point) const {
  workloads::Parallel p;
  p.pp = pp_;
  p.vpp = vpp_;
  for (std::size_t i = base_axes_; i < axes_.size(); ++i) {
    const workloads::Parallel& read = axes_[i].values[digit(point, i)].read->parallel;
    if (axes_[i].key == "parallel.pp") p.pp = read.pp;
    if (axes_[i].key == "parallel.vpp") p.vpp = read.vpp;
  }
  return static_cast<std::size_t>(p.pp) * static_cast<std::size_t>(p.vpp) == split_chunks_;
}

Settings Space::settings(std::uint64_t point, int dp) const {
  Settings all;
  for (std::size_t i = 0; i < axes_.size(); ++i) {
    const Axis::Value& value = axes_[i].values[digit(point, i)];
    all.emplace_back(axes_[i].key, value.text);
    all.insert(all.end(), value.followers.begin(), value.followers.end());
  }
  if (states_dp_ && follows_.dp) all.emplace_back("parallel.dp", std::to_string(dp));
  if (states_etp_) all.emplace_back("parallel.etp", "null");
  if (states_group_) all.emplace_back("optimizer.shard_group", "null");
  if (follows_.layers) all.emplace_back("parallel.layers_per_stage", has_stated_split(point) ? split_text_ : "[]");
  return all;
}

Job Space::job_of(std::uint64_t point, int dp) const {
  Node node = given_;
  for (const auto& [key, text] : settings(point, dp)) set_in_job(node, key, text);
  return read_job(node, name_);
}

std::string Space::text() const {
  std::string text;
  for (const Axis& axis : axes_) {
    text += axis.key + ":";
    for (const Axis::Value& value : axis.values) {
      text += " " + value.text;
      for (const auto& [key, follower] : value.followers) text += fmt::format(" ({} {})", key, follower);
    }
    text += '\n';
  }
  return text;
}

}  // namespace rehearse::sim
