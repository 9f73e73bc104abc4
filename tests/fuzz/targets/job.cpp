#include "tests/fuzz/target.hpp"
#include "tests/fuzz/targets/answers.hpp"

namespace rehearse::fuzz {
namespace {

class Job final : public Target {
  void read(const std::string& input) const override { check_answers(sim::read_job(config::Node::load_text(input, "job.yaml"), "job")); }
};

const TargetRegistry::Registration<Job> job_registration("job");

}  // namespace
}  // namespace rehearse::fuzz
