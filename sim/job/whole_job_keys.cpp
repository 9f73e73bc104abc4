#include "sim/job/whole_job_keys.hpp"

#include <fmt/format.h>

#include "config/quantity.hpp"
#include "sim/job/limits.hpp"
#include "sim/job/recovery_policy.hpp"
#include "sim/job/refusal.hpp"

namespace rehearse::sim {
namespace {

using config::Dimension;
using config::Form;
using config::Key;
using config::Keys;
using config::Node;
using config::Shape;
using config::whole;

constexpr std::int64_t most_job_steps = 1'000'000'000'000;
constexpr double most_job_tokens = 1e18;

const config::Names<Store> stores{{"disk", Store::disk}, {"shared", Store::shared}, {"memory", Store::memory}};

Form<double> time_form() {
  return config::quantity(Dimension::time).checked([](const Node& node, double seconds) {
    if (seconds > longest_job_s) node.fail(fmt::format("{} is longer than 100 years", node.path()));
  });
}

Form<double> positive_time() {
  return time_form().checked([](const Node& node, double seconds) {
    if (to_ns(seconds) == 0) node.fail(node.path() + " must be longer than 0 s");
  });
}

bool is_bare_number(const Node& node) {
  return node.is_scalar() && node.as_string().find_first_not_of("0123456789.eE+-") == std::string::npos;
}

// auto, a number of steps, or a time.
Form<CheckpointInterval> interval_form() {
  const Form<std::int64_t> steps = whole<std::int64_t>(1, most_job_steps);
  const Form<double> time = positive_time();
  const auto read = [=](const Node& node) -> CheckpointInterval {
    if (node.is_scalar() && node.as_string() == "auto") return {};
    if (is_bare_number(node)) return {.steps = steps.read(node)};
    return {.time_s = time.read(node)};
  };
  return {config::either({{.kind = Shape::Kind::choice, .choices = {"auto"}}, steps.shape, time.shape}), read};
}

const Keys<CheckpointBackup>& backup_keys() {
  using Backup = CheckpointBackup;
  using K = Key<Backup>;
  const auto place = choice(stores).checked([](const Node& node, Store store) {
    if (store == Store::memory) node.fail("a backup is kept on disk or shared storage");
  });
  static const Keys<Backup> keys{
      K("interval", &Backup::interval_steps, whole<std::int64_t>(1, most_job_steps), "In steps.").required(),
      K("to", &Backup::to, place, "Where to."),
      K("save_time", &Backup::save_s, word_or_none("auto", time_form()), "Of a save; auto: from the cluster's storage."),
      K("load_time", &Backup::load_s, word_or_none("auto", time_form()), "Of a load."),
  };
  return keys;
}

}  // namespace

const Keys<WholeJob>& training_keys() {
  using K = Key<WholeJob>;
  static const Keys<WholeJob> keys{
      K(
          "steps", [](auto& job) -> auto& { return job.training.steps; }, whole<std::int64_t>(1, most_job_steps), "Length in steps.")
          .otherwise(""),
      K(
          "tokens", [](auto& job) -> auto& { return job.training.tokens; }, config::number(1, most_job_tokens), "Length in tokens.")
          .otherwise(""),
      K(
          "time", [](auto& job) -> auto& { return job.training.time_s; }, positive_time(), "Length by the clock on the wall.")
          .otherwise(""),
      K("step", &WholeJob::step_s, positive_time(), "Of the healthy job, instead of predicting it; --step comes first.")
          .otherwise("predicted"),
      K("init", &WholeJob::init_s, word_or_none("auto", time_form()), "The first start; auto: 60 s x (GPUs / 8)^0.34."),
      K("data", &WholeJob::data_s, time_form(), "Reading data again after a restart."),
  };
  return keys;
}

void check_training(const Node& training) {
  int lengths = 0;
  for (const char* key : {"steps", "tokens", "time"}) lengths += training.find(key) ? 1 : 0;
  if (lengths != 1) {
    training.fail_at_key(
        fmt::format("training needs one of steps, tokens and time, not {}", lengths == 0 ? "none" : "several"),
        lengths == 0 ? "write for example steps: 100000" : "null takes a key of the job away, for example --set training.time=null");
  }
}

const Keys<CheckpointSpec>& checkpoint_keys() {
  constexpr double largest_slowdown = 1000;
  constexpr int most_copies = 100;
  using Spec = CheckpointSpec;
  using K = Key<Spec>;
  static const Keys<Spec> keys{
      K("interval", &Spec::interval, interval_form(), "Steps or a time; auto: the optimum by formula.").otherwise("auto"),
      K("mode", &Spec::async, config::either_word("sync", "async"), "Whether training waits for the write."),
      K("size", &Spec::size_bytes, word_or_none("auto", config::quantity(Dimension::bytes)), "auto: from model and precision."),
      K("to", &Spec::to, choice(stores), "Where to.").otherwise("shared where the cluster has such storage, else disk"),
      K("save_time", &Spec::save_s, word_or_none("auto", time_form()), "Of a save; auto: from the cluster's storage."),
      K("load_time", &Spec::load_s, word_or_none("auto", time_form()), "Of a load."),
      K("stall", &Spec::stall_s, word_or_none("auto", time_form()),
        "Mode async: training stands still so long; auto: the copy to host memory."),
      K("slowdown", &Spec::slowdown, config::number(1, largest_slowdown), "Mode async: of steps during the write."),
      K("copies", &Spec::copies, whole(1, most_copies), "To memory: nodes that hold each part."),
      K("backup", &Spec::backup, mapping(backup_keys()), "Every so many steps to a second place too."),
  };
  return keys;
}

void check_checkpoint(const Node& checkpoint, const CheckpointSpec& spec, int nodes) {
  for (const char* key : {"stall", "slowdown"}) {
    if (const auto given = checkpoint.find(key); given && !spec.async) given->fail_at_key(fmt::format("{} is for mode async", key));
  }
  if (spec.to != Store::memory || spec.copies <= nodes) return;
  const std::string why = fmt::format("{} copies of a checkpoint in memory need as many nodes, and the job has {}", spec.copies, nodes);
  if (const auto copies = checkpoint.find("copies")) copies->fail(why);
  checkpoint.at("to").fail(why + " (copies is 2 unless given)");
}

const Keys<RecoverySpec>& recovery_keys() {
  using Spec = RecoverySpec;
  using K = Key<Spec>;
  const auto of_level = [](FaultLevel level) {
    return [index = static_cast<std::size_t>(level)](auto& spec) -> auto& { return spec.time[index]; };
  };
  static const Keys<Spec> keys{
      K("policy", &Spec::policy, config::word(RecoveryPolicyRegistry::names()), "What the job does when something fails."),
      K("process", of_level(FaultLevel::process), DurationLaw::form(), "Starting processes again in place."),
      K("pod", of_level(FaultLevel::pod), DurationLaw::form(), "Starting pods on other nodes."),
      K("job", of_level(FaultLevel::job), DurationLaw::form(), "Starting the whole job again."),
      K("detection", &Spec::detection, DurationLaw::form(), "Until a failure is noticed."),
      K("spares", &Spec::spares, word_or_none("unlimited", whole(0, most_gpus)), "Idle nodes.")
          .otherwise("unlimited; 0 for a policy that leaves nodes out"),
      K("repair", &Spec::repair, DurationLaw::form(), "Of a node, which then is a spare; needed where spares are counted.").otherwise(""),
      K("when_empty", &Spec::shrink_when_empty, config::either_word("wait", "shrink"), "What happens without spares."),
      K("swap", &Spec::swap, DurationLaw::form(), "Taking in or leaving out nodes without starting pods.").otherwise("process"),
  };
  return keys;
}

void settle_recovery(RecoverySpec& spec) {
  if (RecoveryPolicyRegistry::get(spec.policy).leaves_out() && !spec.spares) spec.spares = 0;
}

void check_recovery(const Node& job, const RecoverySpec& spec) {
  const bool needs_repair = spec.spares.has_value();
  if (!needs_repair || spec.repair.mean_s() > 0) return;
  refuse(job, "recovery", "recovery.repair is needed where nodes come back from repair (spares, or policy shrink)",
         "for example repair: 4 h");
}

}  // namespace rehearse::sim
