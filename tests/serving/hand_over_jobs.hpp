// A job of two sides with a mode of hand-over, by the formula and simulated.
#pragma once

#include <fmt/format.h>

#include <string>

#include "deployments.hpp"
#include "sim/serving/deployment.hpp"
#include "sim/serving/formula.hpp"

namespace rehearse::tests {

inline std::string hand_over_job(const std::string& mode, const std::string& load, int tokens, const std::string& more = "",
                                 const std::string& sender = "{tp: 8}", const std::string& receiver = "{tp: 8}") {
  return fmt::format(
      "model: llama3-70b\ncluster: dgx-h100-ndr400\nsoftware: vllm\nserving:\n"
      "  pools:\n"
      "    prefill: {{role: prefill, parallel: {}, precision: {{compute: fp8, weights: fp8, kv: bf16}}, limits: {{tokens: {}}}}}\n"
      "    decode: {{role: decode, parallel: {}, precision: {{compute: fp8, weights: fp8, kv: bf16}}}}\n"
      "  transfer: {{mode: {}{}}}\n"
      "  load: {}\n",
      sender, tokens, receiver, mode, more, load);
}

struct FormulaAndRun {
  sim::ServingResult formula, simulated;
  sim::ServingRun run;
};

inline FormulaAndRun formula_and_run(const std::string& text) {
  const sim::ServingJob job = sim::read_serving_job(config::Node::load_text(text, "job.yaml"), "job");
  const sim::Deployment deployment = deploy(job);
  const sim::ServingSetup setup = setup_of(job, deployment);
  FormulaAndRun out{
      .formula = predict_serving(job, deployment, job.load.input.low).result, .simulated = {}, .run = simulate_serving(setup)};
  out.simulated = result_of(job, setup, out.run);
  return out;
}

}  // namespace rehearse::tests
