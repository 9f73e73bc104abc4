// Faults listed one by one in the file.
#include "sim/faults/given_faults.hpp"

namespace rehearse::sim {
namespace {

using config::Node;

class Script final : public FaultSource {
 public:
  [[nodiscard]] std::vector<config::Parameter> keys() const override {
    const config::Shape item{.kind = config::Shape::Kind::mapping, .keys = given_fault_keys()};
    return {{"faults", {.kind = config::Shape::Kind::list, .parts = {item}}, true, "", "One by one, in order of time."}};
  }
  [[nodiscard]] std::unique_ptr<FaultPlan> read(const Node& node, const FaultContext& context, const std::string& label) const override {
    check_keys(node);
    std::vector<Fault> faults;
    for (const Node& item : node.at("faults").items()) {
      faults.push_back(read_given_fault(item, context, label));
      if (faults.size() > 1 && faults.back().at < faults[faults.size() - 2].at) item.at("at").fail("earlier than the fault before it");
    }
    return given_faults(std::move(faults));
  }
};

const FaultSourceRegistry::Registration<Script> script_registration("script");

}  // namespace
}  // namespace rehearse::sim
