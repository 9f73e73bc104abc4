// The simulated step as it ran: a row for each rank and stream.
#include <fmt/format.h>

#include <map>
#include <set>

#include "sim/report/page/chart.hpp"
#include "sim/report/page/step_results.hpp"

namespace rehearse::sim::page {
namespace {

constexpr double row_height = 11;
constexpr double rank_height = 18;  // the line with its name
constexpr double left = 110;

std::string milliseconds(double seconds) { return in_words(seconds, Unit::milliseconds); }

// Bars of one phase in one row are one path of strokes.
std::string paths_of(const TimelineView::Row& row, const Scale& x, double y) {
  std::map<std::string, std::string> paths;
  for (const TimelineView::Bar& bar : row.bars) {
    const double from = x(bar.start_s);
    paths[bar.phase] += fmt::format("M{} {}h{}", coordinate(from), coordinate(y), coordinate(std::max(x(bar.end_s) - from, 0.7)));
  }
  std::string out;
  for (const auto& [phase, path] : paths) out += fmt::format("<path class=\"{}\" d=\"{}\"/>\n", css_of_words(phase), path);
  return out;
}

std::string bars_of(const TimelineView& view) {
  const Scale x{0, view.end_s, left, chart_width - 40};
  std::string out;
  std::vector<double> y_of;
  double y = 0;
  for (std::size_t i = 0; i < view.rows.size(); ++i) {
    const TimelineView::Row& row = view.rows[i];
    if (i == 0 || view.rows[i - 1].rank != row.rank) {
      y += rank_height;
      out += label(0, y - 5, row.rank_name, "strong");
    }
    y_of.push_back(y + row_height / 2);
    out += label(left - 6, y + row_height - 2, row.stream, "end") + paths_of(row, x, y_of.back());
    y += row_height;
  }
  std::string hover;
  for (const TimelineView::Named& one : view.named) {
    hover += fmt::format("<rect class=\"hover\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"9\"><title>{}: {} from {}</title></rect>\n",
                         coordinate(x(one.start_s)), coordinate(y_of[one.row] - 4.5), coordinate(x(one.end_s) - x(one.start_s)),
                         escaped(one.name), milliseconds(one.end_s - one.start_s), milliseconds(one.start_s));
  }
  return svg("Timeline of the simulated ranks", y + 24, axis_of_time(x, 0, y + 4) + "<g class=\"bars\">\n" + out + "</g>\n" + hover);
}

// It comes on top of the timeline's step, of no operation.
bool allocator_takes_time(const Input& input) {
  const std::string pointer = "/results/simulated/mean_phases_s/allocator";
  return input.has(pointer) && input.at(pointer).get<double>() > 0;
}

std::string note_on(const TimelineView& view, bool without_allocator) {
  std::string note = fmt::format("{} operations on {} simulated rank{}", view.operations, view.ranks, view.ranks == 1 ? "" : "s");
  if (view.ranks_shown < view.ranks) note += fmt::format(", of which {} are shown", view.ranks_shown);
  note += "; what is nearer than half a pixel is one bar";
  if (view.bars_left_out > 0) note += fmt::format("; the {} shortest of {} bars are left out", view.bars_left_out, view.bars);
  if (without_allocator) note += "; what the allocator takes comes on top of the step and is not drawn";
  return fmt::format("<p class=\"sub\">{}. Every operation is in timeline.json, for Perfetto.</p>\n", note);
}

class TimelineSection final : public Section {
 public:
  [[nodiscard]] int order() const override { return 30; }
  [[nodiscard]] std::string_view title() const override { return "Timeline"; }
  // Of ranks: the devices of a split-federated round have bars of their own.
  [[nodiscard]] bool applies(const Input& input) const override {
    return input.timeline && !input.timeline->rows.empty() && !input.has("/federated");
  }
  [[nodiscard]] std::string html(const Input& input) const override {
    std::set<std::string> phases;
    for (const auto& row : input.timeline->rows) {
      for (const auto& bar : row.bars) phases.insert(bar.phase);
    }
    std::vector<Mark> marks;
    for (const std::string& phase : phases) marks.push_back({css_of_words(phase), phase.empty() ? "not told (--trace-args none)" : phase});
    return note_on(*input.timeline, allocator_takes_time(input)) + legend(marks) + bars_of(*input.timeline);
  }
};

const SectionRegistry::Registration<TimelineSection> timeline_section_registration("timeline");

}  // namespace
}  // namespace rehearse::sim::page
