// What the time in passes goes to: seconds, or shares of some.
#pragma once

#include <array>
#include <string_view>

#include "sim/serving/pass_price.hpp"

namespace rehearse::sim {

struct PassMix {
  double weights = 0;  // products, their weights and what stands around them; the model that proposes tokens
  double cache = 0;    // attention
  double communication = 0;
  double host = 0;
  double waiting = 0;  // for anything else

  using Part = double PassMix::*;
  struct Named {
    std::string_view name;
    Part part;
  };
  static constexpr std::array<Named, 5> parts() {
    return {{{"weights", &PassMix::weights},
             {"cache", &PassMix::cache},
             {"communication", &PassMix::communication},
             {"host", &PassMix::host},
             {"waiting", &PassMix::waiting}}};
  }
  [[nodiscard]] double sum() const { return weights + cache + communication + host + waiting; }
  void add(const PassMix& other, double times) {
    for (const Named& one : parts()) this->*one.part += times * (other.*one.part);
  }
  // With the same proportions.
  [[nodiscard]] PassMix scaled_to(double seconds) const {
    PassMix out;
    if (const double all = sum(); all > 0) out.add(*this, seconds / all);
    return out;
  }
};

// Stages of a pipeline that wait for the slowest one wait.
[[nodiscard]] inline PassMix mix_of(const PassCost& cost) {
  return {.weights = cost.linear_s + cost.experts_s + cost.head_s + cost.draft_s,
          .cache = cost.attention_s,
          .communication = cost.communication_s,
          .host = cost.host_s,
          .waiting = cost.stages_s};
}

}  // namespace rehearse::sim
