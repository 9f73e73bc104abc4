#include "tests/fuzz/target.hpp"
#include "tests/fuzz/targets/answers.hpp"

namespace rehearse::fuzz {
namespace {

class Counts final : public Target {
  void read(const std::string& input) const override {
    const std::string text =
        "model: mixtral-8x7b\ncluster: dgx-h100-ndr400\ngpus: 8\nparallel: {ep: 8}\nbatch: {global: 16, micro: 1, sequence: 512}\n"
        "simulation: {steps: 2}\nmoe: {routing: {trace: " +
        scratch_file("counts.csv", input) + "}}\n";
    check_answers(sim::read_job(config::Node::load_text(text, "job.yaml"), "job"));
  }
};

const TargetRegistry::Registration<Counts> counts_registration("counts");

}  // namespace
}  // namespace rehearse::fuzz
