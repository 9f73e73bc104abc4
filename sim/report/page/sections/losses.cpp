// A run of a whole job over its weeks: what each stretch of time lost to standing still and to steps done again.
#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "config/input_error.hpp"
#include "sim/report/page/chart.hpp"
#include "sim/report/page/page.hpp"

namespace rehearse::sim::page {
namespace {

constexpr std::size_t stretches = 60;
constexpr double losses_height = 200;

struct Loss {
  double still_ns = 0, again_ns = 0;
};
struct History {
  double end_ns = 0;
  std::vector<Loss> losses = std::vector<Loss>(stretches);

  // From .. to, spread over the stretches that it lies in.
  void stand_still(double from_ns, double to_ns) {
    const double each = end_ns / stretches;
    for (auto i = static_cast<std::size_t>(from_ns / each); i < stretches && static_cast<double>(i) * each < to_ns; ++i) {
      losses[i].still_ns += std::min(to_ns, static_cast<double>(i + 1) * each) - std::max(from_ns, static_cast<double>(i) * each);
    }
  }
};

std::vector<Json> events_of(const std::string& lines) {
  std::vector<Json> events;
  std::istringstream in(lines);
  std::string line;
  for (int number = 1; std::getline(in, line); ++number) {
    try {
      events.push_back(Json::parse(line));
      static_cast<void>(events.back().at("at_ns").get<double>() + static_cast<double>(events.back().at("event").get<std::string>().size()));
    } catch (const Json::exception& error) {
      throw config::InputError(fmt::format("history.jsonl:{}: {}", number, error.what()));
    }
  }
  return events;
}

// Training stands still from a failure to the next event "training"; the steps that are done again are booked where they were lost.
History history_of(const std::vector<Json>& events) {
  History history;
  history.end_ns = events.back().at("at_ns").get<double>();
  double down_since_ns = -1;
  double step_ns = 0;
  for (const Json& event : events) {
    const double at_ns = event.at("at_ns").get<double>();
    const std::string what = event.at("event");
    if (what == "failure") {
      const auto stretch = std::min(stretches - 1, static_cast<std::size_t>(at_ns / history.end_ns * stretches));
      history.losses[stretch].again_ns += event.value("lost_steps", 0.0) * step_ns;
      if (down_since_ns < 0) down_since_ns = at_ns;
    }
    step_ns = event.value("step_ns", step_ns);
    if (what != "training" || down_since_ns < 0) continue;
    history.stand_still(down_since_ns, at_ns);
    down_since_ns = -1;
  }
  if (down_since_ns >= 0) history.stand_still(down_since_ns, history.end_ns);
  return history;
}

std::string words(double ns) { return in_words(ns, Unit::nanoseconds); }

class Losses final : public Section {
 public:
  [[nodiscard]] int order() const override { return 82; }
  [[nodiscard]] std::string_view title() const override { return "Losses over time"; }
  [[nodiscard]] bool applies(const Input& input) const override {
    const std::string* lines = input.file("history.jsonl");
    return lines != nullptr && std::ranges::count(*lines, '\n') > 1;
  }
  [[nodiscard]] std::string html(const Input& input) const override {
    const History history = history_of(events_of(*input.file("history.jsonl")));
    if (history.end_ns <= 0) return "<p>Nothing happened.</p>\n";
    const double each_ns = history.end_ns / stretches;
    double most = 1e-9;
    for (const Loss& loss : history.losses) most = std::max(most, (loss.still_ns + loss.again_ns) / each_ns);
    const Scale x{0, history.end_ns, 70, chart_width - 40};
    const Scale y{0, most, losses_height, 10};
    const Scale x_in_s{0, history.end_ns * 1e-9, x.left, x.right};
    std::string out =
        axis_of_time(x_in_s, 10, losses_height) + axis_left(y, x.right, [](double share) { return fmt::format("{:.3g} %", 100 * share); });
    for (std::size_t i = 0; i < stretches; ++i) {
      const double left = x(static_cast<double>(i) * each_ns);
      double at = 0;
      for (const auto& [css, name, ns] :
           {std::tuple("c-3", "standing still", history.losses[i].still_ns), std::tuple("c-1", "done again", history.losses[i].again_ns)}) {
        if (ns <= 0) continue;
        out += fmt::format("<rect class=\"{}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"><title>{} from {}: {}</title></rect>\n", css,
                           coordinate(left), coordinate(y(at + ns / each_ns)), coordinate(x(each_ns) - x(0) - 1.5),
                           coordinate(y(at) - y(at + ns / each_ns)), name, words(static_cast<double>(i) * each_ns), words(ns));
        at += ns / each_ns;
      }
    }
    return fmt::format("<p class=\"sub\">Of each {} of the run, what was lost after failures.</p>\n", words(each_ns)) +
           legend({{"c-3", "training stands still"}, {"c-1", "steps done again"}}) + svg("Lost time", losses_height + 24, out);
  }
};

const SectionRegistry::Registration<Losses> losses_registration("losses");

}  // namespace
}  // namespace rehearse::sim::page
