// pools.csv: one row per method and pool (docs/serving.md, "Outputs").
#include "sim/report/csv.hpp"
#include "sim/report/reporter.hpp"
#include "sim/serving/serving_report.hpp"

namespace rehearse::sim {
namespace {

class PoolsCsv final : public Reporter {
 public:
  [[nodiscard]] std::string_view file_name() const override { return "pools.csv"; }
  [[nodiscard]] bool applies(const Report& report) const override {
    const auto* serving = report.find<ServingReport>();
    return serving != nullptr && !serving->tuning && !serving->days && serving->methods.empty();
  }
  void write(const Report& report, std::ostream& out) const override {
    out << "method,pool,instances,gpus,busy,batch,pass_s,cache_tokens,cache_taken,cache_taken_at_most,preemptions,recomputed_tokens,"
           "swapped_bytes,swap_share,prefix_share\n";
    for (const ServingResult& result : report.get<ServingReport>().results) {
      for (const PoolResult& pool : result.pools) {
        csv_row(out, result.method, pool.name, pool.instances, pool.gpus, pool.busy, pool.batch, pool.pass_s, pool.cache_tokens,
                pool.pages_share, pool.most_pages_share, pool.preemptions, pool.recomputed_tokens, pool.swapped_bytes, pool.swap_share,
                pool.prefix_share);
      }
    }
  }
};

const ReporterRegistry::Registration<PoolsCsv> pools_csv_registration("serving-pools-csv");

}  // namespace
}  // namespace rehearse::sim
