#include "tests/fuzz/targets/draw.hpp"

#include <cmath>

#include "tests/fuzz/target.hpp"

namespace rehearse::fuzz {

void draw(const sim::FaultScenario& scenario) {
  constexpr int most = 1000;
  const auto stream = scenario.open(1);
  sim::Ns last = 0;
  for (int i = 0; i < most; ++i) {
    const auto fault = stream->next();
    if (!fault) break;
    if (fault->at < last) throw Nonsense("a fault before the one before it");
    last = fault->at;
  }
  for (const sim::FailureRate& rate : scenario.rates(sim::seconds_per_day)) {
    if (!std::isfinite(rate.per_s) || rate.per_s < 0) throw Nonsense(fmt::format("a rate of {} /s", rate.per_s));
  }
}

}  // namespace rehearse::fuzz
