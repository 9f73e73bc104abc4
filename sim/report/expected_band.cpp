#include "sim/report/expected_band.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <numbers>

#include "config/data_dir.hpp"
#include "config/table.hpp"

namespace rehearse::sim {

struct MeasuredErrors::Row {
  std::optional<std::string> gpu, vendor, software;
  std::string as;  // the stack that was measured, where that is another
  bool by_data_sheet = false;
  std::optional<bool> experts;
  std::optional<int> over, up_to;  // GPUs
  double share = 0;
  int cases = 0, most_gpus = 0;
  std::optional<MemoryCounter> counter;
  ErrorBand band;
  double half = 1, spread = 0;

  [[nodiscard]] bool matches(const Job& job, const std::string& its_software) const {
    return (!gpu || *gpu == job.system.gpu.name) && (!vendor || *vendor == job.system.gpu.vendor) &&
           (!software || *software == its_software) && (!experts || *experts == job.workload.model.moe.has_value()) &&
           (!over || job.system.gpus > *over) && (!up_to || job.system.gpus <= *up_to);
  }
  // Of a step: a GPU without lines of its own is one of those, but where it was measured itself.
  [[nodiscard]] bool matches_step(const Job& job) const {
    return matches(job, job.system.software.name) && (gpu || by_data_sheet == job.system.gpu.by_data_sheet);
  }
  [[nodiscard]] Measured known(const Job& job) const {
    return {.gpu = gpu.has_value(),
            .software = software.has_value(),
            .scale = !beyond(job),
            .gpu_by_data_sheet = by_data_sheet,
            .network_by_line_rates = job.system.cluster.by_line_rates()};
  }
  [[nodiscard]] std::string basis(const Job& job, const Measured& of) const {
    return fmt::format("{}{}{}{}", known_text(job, of), of.network_by_line_rates ? ", network by line rates" : "",
                       of.scale ? "" : ", this scale not", runs());
  }
  [[nodiscard]] std::string runs() const {
    const std::string least = over ? fmt::format("more than {}, ", *over) : "";
    return fmt::format(": {} runs on {}up to {} GPUs", cases, least, most_gpus);
  }
  [[nodiscard]] bool beyond(const Job& job) const;
  [[nodiscard]] ErrorBand band_of(const Job& job) const;

 private:
  [[nodiscard]] std::string known_text(const Job& job, const Measured& of) const {
    const std::string stack = software.value_or("other stacks");
    if (of.gpu_by_data_sheet) return fmt::format("{} by data sheet, {} measured", job.system.gpu.name, stack);
    if (!gpu && !software) return "other GPUs and stacks measured";
    return fmt::format("{} {} {} measured", gpu.value_or("other GPUs"), gpu && software ? "and" : "with", stack);
  }
};

namespace {

constexpr int known_scale = 2;          // times the most GPUs that were measured
constexpr double unknown_scale = 1.25;  // of the band's width beyond

// The columns of the table, in any order; a cell may be empty where a row says nothing.
class Reader {
 public:
  explicit Reader(config::Table& table) : table_(table) {
    table.check_titles(titles, titles);
    for (const std::string& title : titles) columns_.push_back(*table.column(title));
  }

  [[nodiscard]] std::string_view of() const { return cell(0); }
  [[nodiscard]] MeasuredErrors::Row row() const {
    MeasuredErrors::Row row;
    row.gpu = text(1);
    row.vendor = text(2);
    row.software = text(3);
    if (text(4)) row.experts = choice(4, config::Names<bool>{{"false", false}, {"true", true}});
    if (text(5)) row.over = whole(5);
    if (text(6)) row.up_to = whole(6);
    if (text(7)) row.counter = choice(7, memory_counters());
    row.share = table_.number(columns_[8], 0, 1);
    row.cases = whole(9);
    row.most_gpus = whole(10);
    row.band.low = factor(11);
    row.half = factor(12);
    row.band.high = factor(13);
    if (!cell(14).empty()) row.spread = table_.number(columns_[14], 0, 10);
    row.as = text(15).value_or(row.software.value_or("other stacks"));
    row.by_data_sheet = !cell(16).empty();
    return row;
  }

 private:
  static inline const std::vector<std::string> titles{"of",    "gpu",     "vendor", "software", "experts",   "over",
                                                      "up_to", "counter", "share",  "cases",    "most_gpus", "low",
                                                      "half",  "high",    "spread", "as",       "data_sheet"};

  [[nodiscard]] std::string_view cell(std::size_t title) const { return table_.cell(columns_[title]); }
  [[nodiscard]] std::optional<std::string> text(std::size_t title) const {
    return cell(title).empty() ? std::nullopt : std::optional<std::string>(cell(title));
  }
  [[nodiscard]] int whole(std::size_t title) const { return static_cast<int>(table_.whole(columns_[title], 1, 1e9)); }
  [[nodiscard]] double factor(std::size_t title) const { return cell(title).empty() ? 1 : table_.number(columns_[title], 1e-3, 1e3); }
  template <class Choice>
  [[nodiscard]] Choice choice(std::size_t title, const config::Names<Choice>& names) const {
    if (const auto found = names.find(cell(title))) return *found;
    table_.fail_at(columns_[title], fmt::format("unknown {}", titles[title]));
  }

  config::Table& table_;
  std::vector<std::size_t> columns_;
};

// "nanotron (changed)" keeps nanotron's tensors.
std::string unchanged(const std::string& software) { return software.substr(0, software.find(" (")); }

}  // namespace

bool MeasuredErrors::Row::beyond(const Job& job) const { return job.system.gpus > known_scale * most_gpus; }

ErrorBand MeasuredErrors::Row::band_of(const Job& job) const {
  if (!beyond(job)) return band;
  return {std::pow(band.low, unknown_scale), std::pow(band.high, unknown_scale)};
}

MeasuredErrors::MeasuredErrors() {
  const std::filesystem::path path = std::filesystem::path(config::data_dir()) / "platforms" / "accuracy.csv";
  auto in = std::make_unique<std::ifstream>(path);
  if (!*in) return;
  config::Table table(std::move(in), path);
  const Reader reader(table);
  while (table.next()) {
    if (reader.of() != "step" && reader.of() != "peak" && reader.of() != "need") table.fail("a row of step, peak or need");
    (reader.of() == "step" ? steps_ : reader.of() == "peak" ? peaks_ : needs_).push_back(reader.row());
  }
}

MeasuredErrors::~MeasuredErrors() = default;

const MeasuredErrors::Row* MeasuredErrors::first(const std::vector<Row>& rows, const Job& job, const std::string& software) {
  const auto found = std::ranges::find_if(rows, [&](const Row& row) { return row.matches(job, software); });
  return found == rows.end() ? nullptr : &*found;
}

// The first row that a job matches, and of its stack those of what else was counted.
std::vector<ExpectedPeak> MeasuredErrors::peaks(const Job& job) const {
  std::vector<ExpectedPeak> found;
  const std::string software = unchanged(job.system.software.name);
  for (const Row& row : peaks_) {
    const MemoryCounter counter = row.counter.value_or(MemoryCounter::allocated);
    const bool is_new = std::ranges::none_of(found, [&](const ExpectedPeak& peak) { return peak.counter == counter; });
    if (!row.matches(job, software) || !is_new || (!row.software && !found.empty())) continue;
    Measured of = row.known(job);
    of.network_by_line_rates = false;
    found.push_back({row.band_of(job), counter, row.basis(job, of)});
  }
  return found;
}

ExpectedBands MeasuredErrors::bands(const Job& job, std::optional<double> needed_share) const {
  ExpectedBands bands;
  const auto step = std::ranges::find_if(steps_, [&](const Row& row) { return row.matches_step(job); });
  if (step != steps_.end()) {
    bands.share = step->share;
    bands.step = step->band_of(job);
    bands.known = step->known(job);
    bands.step_basis = step->basis(job, bands.known);
  }
  bands.peaks = peaks(job);
  if (!bands.peaks.empty()) bands.share = peaks_.front().share;
  const MostNeed most = most_need(job);
  if (needed_share && !most.basis.empty()) bands.fits = {most.chance(*needed_share), most.basis};
  return bands;
}

PeakRange peak_range(const ExpectedBands& bands, const ExpectedPeak& peak, const MemoryResult& memory) {
  const double counted = counted_bytes(memory, peak.counter);
  const PeakRange whole{.low_bytes = peak.band.low * counted, .high_bytes = peak.band.high * counted};
  double room = 0;
  for (const RankMemory& rank : memory.ranks) {
    const double beside = peak.counter == MemoryCounter::nvidia_smi ? 0 : rank.at_peak[MemoryUse::framework];
    room = std::max(room, rank.capacity_bytes - beside);
  }
  const double below = (1 - bands.share) / 2;
  const bool may_fit = memory.fits() || (bands.fits && bands.fits->chance > below);
  if (!may_fit) return whole;
  const double low = std::min(whole.low_bytes, room);
  if (!memory.fits()) return {.low_bytes = low, .high_bytes = whole.high_bytes};
  return {low, std::min(whole.high_bytes, room), whole.high_bytes > room};
}

double MostNeed::chance(double needed_share) const {
  constexpr double either_way = 0.01;  // of the measured runs far from the edge (docs/accuracy.md, "How sure a verdict is")
  if (basis.empty()) return needed_share * factor <= 1 ? 1 : 0;
  const double suffices =
      spread > 0 ? std::erfc(std::log(needed_share * half) / spread / std::numbers::sqrt2) / 2 : needed_share * half <= 1;
  return either_way + (1 - 2 * either_way) * suffices;
}

MostNeed MeasuredErrors::most_need(const Job& job) const {
  const Row* row = first(needs_, job, unchanged(job.system.software.name));
  if (row == nullptr) return {};
  return {std::max(1.0, row->band_of(job).high), row->half, row->spread,
          row->as + row->runs() + (row->beyond(job) ? ", this scale not" : "")};
}

}  // namespace rehearse::sim
