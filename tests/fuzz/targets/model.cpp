#include <cmath>

#include "tests/fuzz/target.hpp"
#include "workloads/model.hpp"

namespace rehearse::fuzz {
namespace {

class Model final : public Target {
  void read(const std::string& input) const override {
    const workloads::Model model = workloads::read_model(config::Node::load_text(input, "model.yaml"), "model");
    const double parameters = workloads::count_parameters(model).total;
    if (!std::isfinite(parameters) || parameters <= 0) throw Nonsense(fmt::format("{} parameters", parameters));
  }
};

const TargetRegistry::Registration<Model> model_registration("model");

}  // namespace
}  // namespace rehearse::fuzz
