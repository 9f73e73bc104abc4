#include "sim/faults/scenario.hpp"

#include "config/data_dir.hpp"
#include "config/reference.hpp"

namespace rehearse::sim {
namespace {

using config::Node;

constexpr std::string_view folder = "workloads/faults";

// A trace given as the whole of `faults`.
Node trace_alone(const Node& file) {
  Node sources;
  Node trace;
  trace.set("source", "trace");
  trace.set_child("file", file);
  sources.set_child("trace", trace);
  return sources;
}

Node find_sources(const Node& node) {
  if (!node.is_scalar()) return node;
  const std::string name = node.as_string();
  if (name.ends_with(".csv")) return trace_alone(node);
  if (name.find('/') != std::string::npos || name.ends_with(".yaml")) return config::load_referenced(node);
  const std::string path = config::data_file(folder, name);
  if (path.empty()) node.fail("unknown fault scenario " + config::shown(name), config::suggestion(name, config::data_names(folder)));
  return Node::load_file(path);
}

class Merged final : public FaultStream {
 public:
  explicit Merged(std::vector<std::unique_ptr<FaultStream>> streams) : streams_(std::move(streams)) {
    for (const auto& stream : streams_) heads_.push_back(stream->next());
  }

  std::optional<Fault> next() override {
    std::size_t first = heads_.size();
    for (std::size_t i = 0; i < heads_.size(); ++i) {
      if (heads_[i] && (first == heads_.size() || heads_[i]->at < heads_[first]->at)) first = i;
    }
    if (first == heads_.size()) return std::nullopt;
    auto fault = std::move(heads_[first]);
    heads_[first] = streams_[first]->next();
    return fault;
  }

 private:
  std::vector<std::unique_ptr<FaultStream>> streams_;
  std::vector<std::optional<Fault>> heads_;
};

const FaultSource& source_of(const Node& node) {
  const Node name = node.at("source");
  static_cast<void>(name.as_choice(FaultSourceRegistry::names()));
  return FaultSourceRegistry::get(name.as_string());
}

}  // namespace

FaultScenario FaultScenario::read(const Node& node, const FaultContext& context) {
  const Node sources = find_sources(node);
  if (!sources.is_map())
    sources.fail("faults must be a mapping of sources, each with a name", "for example {hardware: {source: poisson, rate: 0.005 /day}}");
  FaultScenario scenario;
  for (const std::string& label : sources.keys()) {
    const Node given = sources.at(label);
    if (!given.is_map()) given.fail("a fault source is a mapping", "for example {source: poisson, rate: 0.005 /day}");
    const FaultSource& source = source_of(given);
    scenario.plans_.push_back(source.read(given, context, label));
    scenario.resolved_.set_child(label, source.resolved(given, context));
  }
  return scenario;
}

std::unique_ptr<FaultStream> FaultScenario::open(std::uint64_t seed) const {
  std::vector<std::unique_ptr<FaultStream>> streams;
  for (std::size_t i = 0; i < plans_.size(); ++i) streams.push_back(plans_[i]->open(Random(seed, i)));
  return std::make_unique<Merged>(std::move(streams));
}

std::vector<FailureRate> FaultScenario::rates(double horizon_s) const {
  std::vector<FailureRate> all;
  for (const auto& plan : plans_) {
    const std::vector<FailureRate> rates = plan->rates(horizon_s);
    all.insert(all.end(), rates.begin(), rates.end());
  }
  return all;
}

}  // namespace rehearse::sim
