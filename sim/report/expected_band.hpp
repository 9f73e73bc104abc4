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

// What of a job was measured, as far as its band says.
struct Measured {
  bool gpu = false, software = false, scale = false;
  bool gpu_by_data_sheet = false;      // not measured, and without lines of its own
  bool network_by_line_rates = false;  // what its messages reach is what such links reach
};

struct ExpectedPeak {
  ErrorBand band;
  MemoryCounter counter = MemoryCounter::allocated;  // what was measured
  std::string basis;
};

// How sure it is that memory suffices.
struct ChanceToFit {
  double chance = 0;
  std::string basis;  // which runs say so
};

struct ExpectedBands {
  double share = 0;  // of measurements inside
  std::optional<ErrorBand> step;
  std::string step_basis;  // which measured runs it comes from: "h100-sxm5-80g and megatron-core measured: 18 runs on up to 10752 GPUs"
  Measured known;          // of the step
  std::vector<ExpectedPeak> peaks;  // of what says most of GPU and stack first; others of the stack by what was counted
  std::optional<ChanceToFit> fits;  // none: nobody knows
};

// What a source would count, of the GPU with most of it. Of a job that fits no more than there is room for, since a run that asks for more
// does not end (cut: the band reaches beyond); of another one what it would need, but from no more than there is room for where it fits
// more often than a measurement lies below the band, so that band and chance, which are of different runs, do not say opposite things.
struct PeakRange {
  double low_bytes = 0, high_bytes = 0;
  bool cut = false;
};
[[nodiscard]] PeakRange peak_range(const ExpectedBands& bands, const ExpectedPeak& peak, const MemoryResult& memory);

// What a plan may need of a GPU's memory, as a factor, at least 1, of what the formula says it needs.
struct MostNeed {
  double factor = 1;
  double half = 1;    // what half of the runs needed
  double spread = 0;  // of what was needed, log-normal: its standard deviation; 0: none is known
  std::string basis;  // which runs say so; empty: none
  // That a plan fits which needs this share of a GPU's memory by the formula. One run in a hundred goes the other way however much is left.
  [[nodiscard]] double chance(double needed_share) const;
};

// platforms/accuracy.csv (scripts/accuracy writes it), read once: of each kind the first row that a job matches, of which the later ones
// say less about GPU and stack and are wider (rows of steps are also of few, more or many GPUs; a GPU that is known by its data sheet alone
// and was not measured has rows of its own). On more GPUs than twice what was measured
// a band is widened by a quarter (assumption). Nothing where there is no file or no row. A stack that the job changes is the stack that it
// is like where memory is concerned.
class MeasuredErrors {
 public:
  MeasuredErrors();
  ~MeasuredErrors();
  // needed_share: of the fullest GPU's memory by the formula; none: nothing is said of it.
  [[nodiscard]] ExpectedBands bands(const Job& job, std::optional<double> needed_share) const;
  [[nodiscard]] MostNeed most_need(const Job& job) const;

  struct Row;

 private:
  [[nodiscard]] std::vector<ExpectedPeak> peaks(const Job& job) const;
  [[nodiscard]] static const Row* first(const std::vector<Row>& rows, const Job& job, const std::string& software);

  std::vector<Row> steps_, peaks_, needs_;  // none: no file
};

// needed_share: by the formula, before the allocator was asked, as runs were counted (sim/memory/predicted.hpp).
[[nodiscard]] inline ExpectedBands expected_bands(const Job& job, double needed_share) { return MeasuredErrors().bands(job, needed_share); }

}  // namespace rehearse::sim
