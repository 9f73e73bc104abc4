#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "sim/federated/chain.hpp"
#include "sim/federated/leakage.hpp"
#include "sim/federated/settings.hpp"
#include "sim/job/limits.hpp"
#include "sim/job/names.hpp"
#include "workloads/model.hpp"

namespace rehearse::federated {
namespace {

using config::Dimension;
using config::Form;
using config::Key;
using config::Keys;
using config::Names;
using config::Node;
using config::Shape;
using config::whole;
using K = Key<Settings>;

const Names<ServerMode>& server_modes() {
  static const Names<ServerMode> names{
      {"per-device", ServerMode::per_device}, {"sequential", ServerMode::sequential}, {"batched", ServerMode::batched}};
  return names;
}
const Names<Objective>& objectives() {
  static const Names<Objective> names{{"round", Objective::round}, {"sum", Objective::sum}};
  return names;
}
const Names<Retune>& retunes() {
  static const Names<Retune> names{{"once", Retune::once}, {"every-round", Retune::every_round}};
  return names;
}
const Names<Granularity>& granularities() {
  static const Names<Granularity> names{{"batch", Granularity::batch}, {"round", Granularity::round}};
  return names;
}

const Keys<Server>& server_keys() {
  using S = Key<Server>;
  static const Keys<Server> keys{
      S("speed", &Server::flop_per_s, config::quantity(Dimension::compute_rate).checked([](const Node& node, double speed) {
        if (speed <= 0) node.fail("a server with a speed of 0 never ends a round");
      }),
        "FLOP/s as achieved, of all devices together.")
          .required(),
      S("mode", &Server::mode, choice(server_modes()),
        "per-device: a server model for each device; sequential: one for all, batch by batch; batched: the batches of all joined.")
          .feature(),
      S("sharing", &Server::sharing, choice(sharings()), "As radio.sharing.").feature(),
  };
  return keys;
}

const Keys<Leakage>& leakage_keys() {
  using L = Key<Leakage>;
  static const Keys<Leakage> keys{
      L("measure", &Leakage::measure, config::word(LeakageRegistry::names()),
        "parameters, offloaded: proxies from the sizes of the parts; table: measured, by the model's units."),
      L("limit", &Leakage::limit, config::number(0, 1), "Of devices that give none; 1: any cut."),
  };
  return keys;
}

const Keys<Selection>& selection_keys() {
  using S = Key<Selection>;
  static const Keys<Selection> keys{
      S("devices", &Selection::devices, whole<std::int64_t>(1, most_devices), "So many count; drawn anew for each round.").required(),
      S("over", &Selection::over, config::number(1, 100), "So many times as many are selected; the first ones that finish count."),
  };
  return keys;
}

const Keys<ServerFailures>& server_failure_keys() {
  using S = Key<ServerFailures>;
  static const Keys<ServerFailures> keys{
      S("mtbf", &ServerFailures::mtbf_s, config::quantity(Dimension::time), "Mean time between failures, exponential.").required(),
      S("repair", &ServerFailures::repair_s, config::quantity(Dimension::time), "Until the server is back.").required(),
  };
  return keys;
}

Form<CutRule> cuts_form() {
  const auto read = [](const Node& node) {
    CutRule rule;
    if (!node.is_map()) {
      rule.for_all = node.as_string();
      return rule;
    }
    if (node.keys() == std::vector<std::string>{"file"}) {
      static_cast<void>(node.at("file").as_string());
      rule.file = node.at("file");
      return rule;
    }
    for (const std::string& name : node.keys()) rule.by_entry[name] = node.at(name).as_string();
    if (rule.by_entry.empty()) node.fail("names no device", "cuts: {pi: block4, phone: block2}");
    return rule;
  };
  const auto write = [](const CutRule& rule) {
    if (rule.one_word()) return Node::scalar(rule.for_all, true);
    Node out;
    if (rule.file) out.set_child("file", rule.file);
    for (const auto& [name, cut] : rule.by_entry) out.set_child(name, Node::scalar(cut, true));
    return out;
  };
  Shape by_entry{.kind = Shape::Kind::mapping};
  by_entry.keys.push_back({"*", {.kind = Shape::Kind::text}, false, "", "The cut of a device by its name."});
  Shape file{.kind = Shape::Kind::mapping};
  file.keys.push_back({"file", {.kind = Shape::Kind::text}, true, "", "A CSV file with the columns name and cut."});
  return {config::either({{.kind = Shape::Kind::text}, by_entry, file}), read, write};
}

Form<ShareRule> shares_form() {
  const std::vector<std::string> words{"tuned", "equal", "proportional"};
  Shape file{.kind = Shape::Kind::mapping};
  file.keys.push_back({"file", {.kind = Shape::Kind::text}, true, "", "A CSV file with the columns name, uplink, downlink and server."});
  const auto read = [words](const Node& node) {
    if (!node.is_map()) return ShareRule{node.as_choice(words), {}};
    node.allow_keys({"file"});
    static_cast<void>(node.at("file").as_string());
    return ShareRule{"file", node.at("file")};
  };
  const auto write = [](const ShareRule& rule) {
    if (!rule.file) return Node::scalar(rule.word, true);
    Node out;
    out.set_child("file", rule.file);
    return out;
  };
  return {config::either({{.kind = Shape::Kind::choice, .choices = words}, file}), read, write};
}

Form<RoundDeadline> deadline_form() {
  const Form<double> time = config::quantity(Dimension::time), quantile = config::number(0.01, 1);
  Shape relative{.kind = Shape::Kind::mapping};
  relative.keys.push_back({"quantile", quantile.shape, true, "", "Of the devices' latencies by formula with equal shares."});
  const auto read = [=](const Node& node) {
    RoundDeadline deadline;
    if (node.is_map()) {
      node.allow_keys({"quantile"});
      deadline.quantile = quantile.read(node.at("quantile"));
    } else if (node.as_string() != "none") {
      deadline.seconds = time.read(node);
      if (deadline.seconds <= 0) node.fail("a deadline of 0 leaves no time to train", "write none, or a time");
    }
    return deadline;
  };
  const auto write = [=](const RoundDeadline& deadline) {
    if (deadline.quantile == 0) return deadline.seconds > 0 ? time.write(deadline.seconds) : Node::scalar("none", true);
    Node out;
    out.set_child("quantile", quantile.write(deadline.quantile));
    return out;
  };
  return {config::either({{.kind = Shape::Kind::choice, .choices = {"none"}}, time.shape, relative}), read, write};
}

// What the section `federated` holds. Long, since every key is a line.
const Keys<Settings>& federated_keys() {
  static const Keys<Settings> keys{
      K(
          "devices", entries_shape(), [](const Node& node, Settings& settings) { settings.entries = read_entries(node); },
          [](const Settings& settings) { return write_entries(settings.entries); }, "Who takes part.")
          .required(),
      K("server", &Settings::server, mapping(server_keys()), "Trains what the devices do not hold.").required(),
      K("radio", &Settings::radio, mapping(radio_keys()), "What the devices share on the way to the server."),
      K("batch", &Settings::batch, whole<std::int64_t>(1, 1'000'000'000), "Samples of a batch."),
      K("epochs", &Settings::epochs, whole<std::int64_t>(1, 1'000'000), "Passes over a device's samples in a round."),
      K("sequence", &Settings::sequence, whole(1, 100'000'000), "Tokens of a sample; of transformers only."),
      K("element", &Settings::element_bytes, choice(element_types()), "Of transformers: how parameters and activations are held and sent."),
      K("label_bytes", &Settings::label_bytes, config::number(0, 1e9), "Bytes of a label, which go up with the smashed data."),
      K("quantize", &Settings::quantize_bits, whole(1, 64), "Bits of an element of smashed data and of its gradient.")
          .otherwise("those of the model's elements")
          .written_if([](const Settings& settings) { return settings.quantize_bits > 0; }),
      K("broadcast", &Settings::broadcast, config::truth(),
        "The gradients of all devices are averaged and sent once, to everybody (SFL-GA); with server.mode batched.")
          .feature(),
      K("cuts", &Settings::cuts, cuts_form(),
        "tuned, none, random, a unit's name for all or for each name of devices, or each device's from a file."),
      K("shares", &Settings::shares, shares_form(), "tuned, equal, proportional to what a device needs, or from a file."),
      K("objective", &Settings::objective, choice(objectives()), "What tuning shortens: the round, or the sum of the devices' latencies.")
          .feature(),
      K("leakage", &Settings::leakage, mapping(leakage_keys()), "Which cuts a device may take."),
      K("select", &Settings::select, mapping(selection_keys()), "Who takes part in a round.")
          .otherwise("all")
          .written_if([](const Settings& settings) { return settings.select.devices > 0; }),
      K("deadline", &Settings::deadline, deadline_form(), "Of a round: who is later does not count."),
      K("dropout", &Settings::dropout, config::quantity(Dimension::chance).checked([](const Node& node, double chance) {
        if (chance >= 1) node.fail("a chance of 1 leaves nobody");
      }),
        "Chance that a device leaves during a round, at a uniform instant of it."),
      K("retune", &Settings::retune, choice(retunes()), "Cuts and shares: once, or for every round's devices and channels."),
  };
  return keys;
}

const Keys<Settings>& training_keys() {
  static const Keys<Settings> keys{
      K("rounds", &Settings::rounds, whole<std::int64_t>(1, 10'000'000), "Rounds of a run: an input, since convergence is not simulated.")};
  return keys;
}

const Keys<Settings>& simulation_keys() {
  static const Keys<Settings> keys{
      K("granularity", &Settings::granularity, choice(granularities()),
        "batch: five operations per batch; round: seven per device, exact where shares are reserved."),
      K("solver", &Settings::solver, choice(sim::solvers), "auto, or simgrid: the reference, the same to 1e-9 and slower."),
      K("seed", &Settings::seed, whole<std::uint64_t>(0, sim::largest_seed), "Of what is drawn at random."),
      K(
          "faults", {.kind = Shape::Kind::list, .parts = {{.kind = Shape::Kind::text}}},
          [](const Node& node, Settings& settings) { settings.faults_node = node; },
          [](const Settings& settings) { return settings.faults_node; }, "What goes wrong in a round: [device 3 slow 4, uplink slow 2]."),
  };
  return keys;
}

const Keys<Settings>& fault_keys() {
  static const Keys<Settings> keys{
      K("server", &Settings::server_failures, mapping(server_failure_keys()), "A failure loses the server's models of the round.")};
  return keys;
}

K section(std::string name, const Keys<Settings>& keys, std::string means) {
  return K(
             std::move(name), keys.shape(), [&keys](const Node& node, Settings& settings) { keys.read(node, settings); },
             [&keys](const Settings& settings) { return keys.write(settings); }, std::move(means))
      .below([&keys](std::string_view path, const Node& node, Settings& settings) { keys.read_at(path, node, settings); });
}

Shape model_shape() { return config::either({{.kind = Shape::Kind::text}, chain_shape(), workloads::model_keys().shape()}); }

}  // namespace

const Keys<Settings>& job_keys() {
  static const Keys<Settings> keys{
      K("name", &Settings::name, config::text(), "What the job is called.").otherwise("the file's name"),
      K(
          "model", model_shape(), [](const Node& node, Settings& settings) { settings.model = node; },
          [](const Settings& settings) { return settings.model; }, "A chain of units, or a dense transformer.")
          .required(),
      section("federated", federated_keys(), "Devices, radio, server, and how a round is shared out.").required(),
      section("training", training_keys(), "How long it goes on."),
      section("simulation", simulation_keys(), "How a round is simulated."),
      section("faults", fault_keys(), "What fails over the rounds of a run.").written_if([](const Settings& settings) {
        return settings.server_failures.mtbf_s > 0;
      }),
  };
  return keys;
}

}  // namespace rehearse::federated
