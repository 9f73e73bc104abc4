// What requests wait for when a model is served: latencies by formula and by simulation, the stages of a request, the pools.
#include <fmt/format.h>

#include <algorithm>

#include "sim/report/page/chart.hpp"
#include "sim/report/page/page.hpp"
#include "sim/report/page/step_results.hpp"

namespace rehearse::sim::page {
namespace {

std::vector<std::string> served_methods(const Input& input) {
  std::vector<std::string> methods;
  if (!input.has("/results") || !input.at("/results").is_object()) return methods;
  for (const auto& [method, result] : input.at("/results").items()) {
    if (result.contains("stages_s") && result.contains("pools")) methods.push_back(method);
  }
  return methods;
}

std::string latencies(const Input& input, const std::vector<std::string>& methods) {
  std::vector<std::vector<std::string>> rows;
  for (const auto& [key, name] : {std::pair("ttft", "time to first token"), std::pair("tpot", "time per output token"),
                                  std::pair("itl", "between tokens"), std::pair("e2e", "end to end")}) {
    for (const std::string& method : methods) {
      std::vector<std::string> row{name, escaped(method)};
      for (const char* part : {"mean_s", "p50_s", "p90_s", "p99_s"})
        row.push_back(number(input.result, fmt::format("{}/{}/{}", result_at(method), key, part), Unit::time));
      rows.push_back(std::move(row));
    }
  }
  return table("Latencies of the requests that count", {{"latency", true}, {"method", true}, {"mean"}, {"median"}, {"90 %"}, {"99 %"}},
               rows);
}

std::string stages(const Input& input, const std::vector<std::string>& methods) {
  std::vector<Mark> marks;
  std::vector<Bar> bars;
  double most_s = 0;
  for (const std::string& method : methods) {
    Bar bar{method, {}};
    double sum_s = 0;
    const Json& of_stage = input.at(result_at(method) + "/stages_s");
    for (const char* stage :
         {"queued", "prefilling", "waiting", "aligning", "transferring", "decode_queued", "decoding"}) {  // as a request goes
      const double seconds = of_stage.value(stage, 0.0);
      const std::string css = fmt::format("c-{}", bar.pieces.size());
      if (bars.empty()) marks.push_back({css, words_of_key(stage)});
      bar.pieces.push_back({css, words_of_key(stage), seconds});
      sum_s += seconds;
    }
    most_s = std::max(most_s, sum_s);
    bars.push_back(std::move(bar));
  }
  if (most_s <= 0) return "";
  return legend(marks) + stacked_bars("Stages of a request, in the mean", bars, most_s, [](double s) { return in_words(s, Unit::time); });
}

std::string pools(const Input& input, const std::vector<std::string>& methods) {
  std::vector<std::vector<std::string>> rows;
  for (const std::string& method : methods) {
    const Json& all = input.at(result_at(method) + "/pools");
    for (std::size_t i = 0; i < all.size(); ++i) {
      const auto cell = [&](const char* key, Unit unit) {
        return number(input.result, fmt::format("{}/pools/{}/{}", result_at(method), i, key), unit);
      };
      rows.push_back({escaped(all[i].at("name").get<std::string>()), escaped(method), cell("instances", Unit::count),
                      cell("gpus", Unit::count), cell("busy", Unit::percent), cell("batch", Unit::plain), cell("pass_s", Unit::time),
                      cell("cache_taken", Unit::percent), cell("cache_taken_at_most", Unit::percent), cell("preemptions", Unit::count)});
    }
  }
  return table("Pools",
               {{"pool", true},
                {"method", true},
                {"instances"},
                {"GPUs"},
                {"busy"},
                {"decodes in a pass"},
                {"pass"},
                {"cache taken"},
                {"at most"},
                {"preemptions"}},
               rows);
}

class Serving final : public Section {
 public:
  [[nodiscard]] int order() const override { return 14; }
  [[nodiscard]] std::string_view title() const override { return "Requests"; }
  [[nodiscard]] bool applies(const Input& input) const override { return !served_methods(input).empty(); }
  [[nodiscard]] std::string html(const Input& input) const override {
    const std::vector<std::string> methods = served_methods(input);
    const std::string at = result_at(methods.back()) + "/";  // the simulated one, where there is one
    std::string out;
    if (input.has("/verdicts")) {
      for (const Json& verdict : input.at("/verdicts"))
        out += fmt::format("<p><span class=\"bad\">No</span>: {}.</p>\n", escaped(verdict.get<std::string>()));
    }
    out += "<dl class=\"facts\">\n";
    out += fact("requests/s", number(input.result, at + "requests_per_s", Unit::plain));
    out += fact("output tokens/s", number(input.result, at + "output_tokens_per_s", Unit::count));
    out += fact("output tokens/s per GPU", number(input.result, at + "output_tokens_per_s_per_gpu", Unit::plain));
    if (input.has(at + "within_promise")) out += fact("within the promise", number(input.result, at + "within_promise", Unit::percent));
    if (input.has(at + "lost")) out += fact("requests lost", number(input.result, at + "lost", Unit::count));
    out += "</dl>\n";
    if (input.has("/notes")) {
      for (const Json& note : input.at("/notes")) out += fmt::format("<p>Note: {}.</p>\n", escaped(note.get<std::string>()));
    }
    return out + latencies(input, methods) + stages(input, methods) + pools(input, methods);
  }
};

const SectionRegistry::Registration<Serving> serving_registration("serving");

}  // namespace
}  // namespace rehearse::sim::page
