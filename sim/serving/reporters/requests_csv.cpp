// requests.csv: one row per request, in the order in which they came, with its time in every stage (docs/serving.md, "Outputs").
#include "sim/report/csv.hpp"
#include "sim/report/reporter.hpp"
#include "sim/serving/serving_report.hpp"

namespace rehearse::sim {
namespace {

class RequestsCsv final : public Reporter {
 public:
  [[nodiscard]] std::string_view file_name() const override { return "requests.csv"; }
  [[nodiscard]] bool applies(const Report& report) const override {
    const auto* serving = report.find<ServingReport>();
    return serving != nullptr && serving->run != nullptr;
  }
  void write(const Report& report, std::ostream& out) const override {
    out << "request,input_tokens,output_tokens,arrival_s,first_token_s,last_token_s,state,preemptions,retries,kv_bytes,found_tokens,found_"
           "there_tokens";
    for (std::size_t stage = 0; stage < timed_stages; ++stage) out << ',' << name_of(static_cast<Stage>(stage)) << "_s";
    out << '\n';
    int number = 0;
    for (const RequestState& request : report.get<ServingReport>().run->requests) write_row(number++, request, out);
  }

 private:
  static void write_row(int number, const RequestState& request, std::ostream& out) {
    out << number << ',' << request.tokens.input << ',' << request.tokens.output << ',' << csv_cell(request.arrival_s) << ',';
    out << (request.first_s < 0 ? "" : csv_cell(request.first_s)) << ',' << (request.last_s < 0 ? "" : csv_cell(request.last_s)) << ',';
    out << name_of(request.stage) << ',' << request.preemptions << ',' << request.retries << ',' << csv_cell(request.transfer_bytes) << ','
        << request.reused << ',' << request.there;
    for (const double seconds : request.spent_s) out << ',' << csv_cell(seconds);
    out << '\n';
  }
};

const ReporterRegistry::Registration<RequestsCsv> requests_csv_registration("serving-requests-csv");

}  // namespace
}  // namespace rehearse::sim
