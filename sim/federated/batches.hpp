// The batches of a device's round.
#pragma once

#include <cmath>
#include <cstdint>

#include "sim/federated/job.hpp"

namespace rehearse::federated {

// The last batch of an epoch has what is left.
struct Batches {
  double samples = 0, batch = 1;
  std::int64_t epochs = 1;

  Batches(const Job& job, const Device& device)
      : samples(device.samples), batch(static_cast<double>(job.settings.batch)), epochs(job.settings.epochs) {}
  [[nodiscard]] std::int64_t per_epoch() const { return static_cast<std::int64_t>(std::ceil(samples / batch)); }
  [[nodiscard]] std::int64_t count() const { return epochs * per_epoch(); }
  // Of the round's samples, in batch k.
  [[nodiscard]] double part(std::int64_t k) const {
    const std::int64_t within = k % per_epoch();
    const double size = within + 1 < per_epoch() ? batch : samples - batch * static_cast<double>(per_epoch() - 1);
    return size / (samples * static_cast<double>(epochs));
  }
};

}  // namespace rehearse::federated
