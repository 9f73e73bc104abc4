#include <sstream>

#include "sim/cli/set_option.hpp"
#include "tests/fuzz/target.hpp"
#include "tests/fuzz/targets/answers.hpp"

namespace rehearse::fuzz {
namespace {

class Set final : public Target {
  void read(const std::string& input) const override {
    sim::JobRequest request{.path = "llama3-8b-8-h100", .sets = {}, .seed = {}};
    std::istringstream lines(input);
    for (std::string line; std::getline(lines, line);) request.sets.push_back(cli::parse_set(line));
    check_answers(sim::load_job(request));
  }
};

const TargetRegistry::Registration<Set> set_registration("set");

}  // namespace
}  // namespace rehearse::fuzz
