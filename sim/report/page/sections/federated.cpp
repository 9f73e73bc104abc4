// A split-federated round: how long it is and why, device by device; other ways of choosing cuts and shares; rounds one after another.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "sim/report/page/chart.hpp"
#include "sim/report/page/page.hpp"
#include "sim/report/page/step_results.hpp"

namespace rehearse::sim::page {
namespace {

constexpr std::size_t most_bars = 24, most_rows = 500;

std::string yes_or_no(const Json& value) { return value.get<bool>() ? "yes" : "no"; }

// Those that end last first.
std::vector<std::size_t> slowest_first(const Json& devices) {
  std::vector<std::size_t> order(devices.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, std::ranges::greater(), [&](std::size_t n) { return devices[n].at("end_s").get<double>(); });
  return order;
}

std::string css_of(std::size_t phase) { return fmt::format("c-{}", phase); }

std::string bars(const Json& devices, const std::vector<std::size_t>& order, double round_s) {
  std::vector<Mark> marks;
  for (const auto& [phase, unused] : devices.front().at("phases_s").items()) marks.push_back({css_of(marks.size()), words_of_key(phase)});
  std::vector<Bar> all;
  for (std::size_t i = 0; i < std::min(order.size(), most_bars); ++i) {
    Bar bar{devices[order[i]].at("name").get<std::string>(), {}};
    for (const auto& [phase, seconds] : devices[order[i]].at("phases_s").items())
      bar.pieces.push_back({css_of(bar.pieces.size()), words_of_key(phase), seconds.get<double>()});
    all.push_back(std::move(bar));
  }
  return legend(marks) +
         stacked_bars("Phases of the devices that end last", all, round_s, [](double seconds) { return in_words(seconds, Unit::time); });
}

std::string resources(const Input& input) {
  std::vector<std::vector<std::string>> rows;
  for (const auto& [name, unused] : input.at("/federated/resources").items()) {
    const std::string at = "/federated/resources/" + pointer_part(name) + "/";
    rows.push_back({escaped(name), number(input.result, at + "busy_share", Unit::percent),
                    number(input.result, at + "reserved_idle_share", Unit::percent),
                    number(input.result, at + "seconds_per_percent", Unit::time)});
  }
  return table("What the devices share", {{"resource", true}, {"busy"}, {"reserved and idle"}, {"1 % more saves"}}, rows);
}

std::string devices_table(const Input& input, const std::vector<std::size_t>& order) {
  std::vector<std::vector<std::string>> rows;
  for (std::size_t i = 0; i < std::min(order.size(), most_rows); ++i) {
    const std::string at = fmt::format("/federated/devices/{}/", order[i]);
    const Json& device = input.at("/federated/devices")[order[i]];
    rows.push_back({escaped(device.at("name").get<std::string>()), escaped(device.at("cut").get<std::string>()),
                    number(input.result, at + "end_s", Unit::time), number(input.result, at + "shares/uplink", Unit::percent),
                    number(input.result, at + "shares/downlink", Unit::percent), number(input.result, at + "shares/server", Unit::percent),
                    number(input.result, at + "blame", Unit::percent), number(input.result, at + "leakage", Unit::plain),
                    escaped(device.at("fate").get<std::string>())});
  }
  const std::string caption = order.size() > most_rows ? fmt::format("The {} devices that end last, of {}", most_rows, order.size())
                                                       : "Devices, the last ones first";
  return table(
      caption,
      {{"device", true}, {"cut", true}, {"ends"}, {"of uplink"}, {"of downlink"}, {"of server"}, {"blame"}, {"leakage"}, {"fate", true}},
      rows);
}

class Round final : public Section {
 public:
  [[nodiscard]] int order() const override { return 12; }
  [[nodiscard]] std::string_view title() const override { return "The round"; }
  [[nodiscard]] bool applies(const Input& input) const override {
    return input.has("/federated/round_s") && input.has("/federated/devices/0");
  }
  [[nodiscard]] std::string html(const Input& input) const override {
    const Json& devices = input.at("/federated/devices");
    const std::vector<std::size_t> order = slowest_first(devices);
    std::string out = "<dl class=\"facts\">\n";
    for (const auto& [at, what] :
         {std::pair("/federated/formula/round_s", "by formula"), std::pair("/federated/simulated/round_s", "simulated"),
          std::pair("/federated/any_schedule_s", "no schedule is faster than"),
          std::pair("/federated/aggregation_s", "of it aggregation")}) {
      if (input.has(at)) out += fact(what, number(input.result, at, Unit::time));
    }
    if (input.has("/tuning") && input.has("/federated/proven"))
      out += fact("cuts and shares are proven", yes_or_no(input.at("/federated/proven")));
    out += "</dl>\n";
    if (input.has("/federated/reasons")) {
      for (const Json& reason : input.at("/federated/reasons")) out += fmt::format("<p>{}.</p>\n", escaped(reason.get<std::string>()));
    }
    out += bars(devices, order, input.at("/federated/round_s").get<double>()) + resources(input) + devices_table(input, order);
    return out + fmt::format("<p class=\"sub\">Leakage: {}. {}</p>\n", escaped(input.at("/federated/leakage_measure").get<std::string>()),
                             escaped(input.at("/federated/convergence").get<std::string>()));
  }
};

class FederatedMethods final : public Section {
 public:
  [[nodiscard]] int order() const override { return 66; }
  [[nodiscard]] std::string_view title() const override { return "Ways of choosing cuts and shares"; }
  [[nodiscard]] bool applies(const Input& input) const override { return input.has("/methods/0/shares"); }
  [[nodiscard]] std::string html(const Input& input) const override {
    std::vector<std::vector<std::string>> rows;
    for (std::size_t i = 0; i < input.at("/methods").size(); ++i) {
      const Json& method = input.at("/methods")[i];
      const auto text = [&](const char* key) { return escaped(method.value(key, "")); };
      const auto seconds = [&](const char* key) { return number(input.result, fmt::format("/methods/{}/{}", i, key), Unit::time); };
      rows.push_back({text("method"), text("cuts"), text("shares"), seconds("formula_s"), seconds("simulated_s"), seconds("any_schedule_s"),
                      text("note")});
    }
    return table("On the same devices and draws",
                 {{"method", true}, {"cuts", true}, {"shares", true}, {"formula"}, {"simulated"}, {"no schedule below"}, {"note", true}},
                 rows);
  }
};

class Rounds final : public Section {
 public:
  [[nodiscard]] int order() const override { return 80; }
  [[nodiscard]] std::string_view title() const override { return "Round by round"; }
  [[nodiscard]] bool applies(const Input& input) const override { return input.has("/federated/rounds/0/round_s"); }
  [[nodiscard]] std::string html(const Input& input) const override {
    const Json& rounds = input.at("/federated/rounds");
    std::string out = "<dl class=\"facts\">\n";
    out += fact("training", number(input.result, "/federated/training_s", Unit::time));
    out += fact("rounds that count", number(input.result, "/federated/rounds_done", Unit::count));
    out += fact("useful share of the devices' work", number(input.result, "/federated/useful_share", Unit::percent));
    out += fact("failures of the server", number(input.result, "/federated/server_failures", Unit::count));
    out += "</dl>\n";
    std::vector<std::vector<std::string>> rows;
    for (std::size_t i = 0; i < std::min(rounds.size(), most_rows); ++i) {
      const auto cell = [&](const char* key, Unit unit) {
        return number(input.result, fmt::format("/federated/rounds/{}/{}", i, key), unit);
      };
      rows.push_back({std::to_string(i + 1), cell("begins_s", Unit::time), cell("round_s", Unit::time), cell("selected", Unit::count),
                      cell("finished", Unit::count), cell("dropped", Unit::count), cell("late", Unit::count),
                      yes_or_no(rounds[i].at("lost"))});
    }
    return out + chart(rounds) +
           table(rounds.size() > most_rows ? fmt::format("The first {} rounds of {}", most_rows, rounds.size()) : "Rounds",
                 {{"round"}, {"begins"}, {"takes"}, {"selected"}, {"finished"}, {"left"}, {"late"}, {"lost", true}}, rows);
  }

 private:
  static std::string chart(const Json& rounds) {
    constexpr double height = 200;
    std::vector<Point> points;
    double most_s = 0;
    for (const Json& round : rounds) {
      points.push_back({round.at("begins_s").get<double>(), round.at("round_s").get<double>()});
      most_s = std::max(most_s, points.back().y);
    }
    points.push_back({points.back().x + points.back().y, points.back().y});
    const Scale x{0, points.back().x, 70, chart_width - 40}, y{0, 1.05 * most_s, height, 10};
    return svg("How long each round takes, over the training", height + 24,
               axis_of_time(x, 10, height) + axis_left(y, x.right, [](double seconds) { return in_words(seconds, Unit::time); }) +
                   fmt::format("<path class=\"line c-0\" d=\"{}\"/>\n", stairs(points, x, y)));
  }
};

const SectionRegistry::Registration<Round> round_registration("federated-round");
const SectionRegistry::Registration<FederatedMethods> federated_methods_registration("federated-methods");
const SectionRegistry::Registration<Rounds> rounds_registration("federated-rounds");

}  // namespace
}  // namespace rehearse::sim::page
