// How far an answer may be from what would be measured: what validation found for jobs like it (docs/accuracy.md, "Bands").
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/job/job.hpp"
#include "sim/memory_counter.hpp"

namespace rehearse::sim {

// Factors of the answer between which the stated share of the measurements lay.
struct ErrorBand {
  double low = 1, high = 1;
};

struct ExpectedBands {
  double share = 0;  // of measurements inside
  std::optional<ErrorBand> step, peak;
  std::string step_basis,
      peak_basis;  // which measured runs they come from: "h100-sxm5-80g with megatron-core: 74 runs on up to 10752 GPUs"
  MemoryCounter counter = MemoryCounter::allocated;  // what was measured of the peak
};

// What a plan may need of a GPU's memory, as a factor, at least 1, of what the formula says it needs.
struct MostNeed {
  double factor = 1;
  double half = 1;    // what half of the runs needed; below `factor`, or 1 as that
  std::string basis;  // which runs say so; empty: none
  // That a plan fits which needs this share of a GPU's memory by the formula: what is needed beyond it is log-normal, with the nine tenths
  // and the half above.
  [[nodiscard]] double chance(double needed_share) const;
};

// platforms/accuracy.csv (scripts/accuracy writes it), read once: of each kind the first row that a job matches, of which the later ones
// say less about GPU and stack and are wider (rows of steps are also of few, more or many GPUs). On more GPUs than twice what was measured
// a band is widened by a quarter (assumption). Nothing where there is no file or no row. A stack that the job changes is the stack that it
// is like where memory is concerned.
class MeasuredErrors {
 public:
  MeasuredErrors();
  ~MeasuredErrors();
  [[nodiscard]] ExpectedBands bands(const Job& job) const;
  [[nodiscard]] MostNeed most_need(const Job& job) const;

  struct Row;

 private:
  [[nodiscard]] static const Row* first(const std::vector<Row>& rows, const Job& job, const std::string& software);

  std::vector<Row> steps_, peaks_, needs_;  // none: no file
};

[[nodiscard]] inline ExpectedBands expected_bands(const Job& job) { return MeasuredErrors().bands(job); }

}  // namespace rehearse::sim
