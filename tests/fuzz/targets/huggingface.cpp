#include <cmath>

#include "tests/fuzz/target.hpp"
#include "workloads/model.hpp"

namespace rehearse::fuzz {
namespace {

class Huggingface final : public Target {
  void read(const std::string& input) const override {
    const std::string path = scratch_file("config.json", input);
    const workloads::Model model = workloads::read_model(config::Node::load_text("hf: " + path, "model.yaml"), "");
    const double parameters = workloads::count_parameters(model).total;
    if (!std::isfinite(parameters) || parameters <= 0) throw Nonsense(fmt::format("{} parameters", parameters));
    if (model.moe && model.moe->top_k > model.moe->experts) throw Nonsense("more experts per token than there are");
  }
};

const TargetRegistry::Registration<Huggingface> huggingface_registration("huggingface");

}  // namespace
}  // namespace rehearse::fuzz
