// A history of faults from a CSV file.
#include "config/form.hpp"
#include "sim/faults/trace_file.hpp"

namespace rehearse::sim {
namespace {

using config::Node;

class Trace final : public FaultSource {
 public:
  [[nodiscard]] std::vector<config::Parameter> keys() const override {
    return {{"file", config::text().shape, true, "", "A table with a row for each fault."}};
  }
  [[nodiscard]] std::unique_ptr<FaultPlan> read(const Node& node, const FaultContext& context, const std::string& label) const override {
    return FaultSourceRegistry::get("script").read(resolved(node, context), context, label);
  }

  [[nodiscard]] Node resolved(const Node& node, const FaultContext& context) const override {
    check_keys(node);
    return read_trace_file(node.at("file"), context);
  }
};

const FaultSourceRegistry::Registration<Trace> trace_registration("trace");

}  // namespace
}  // namespace rehearse::sim
