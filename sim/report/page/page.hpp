// report.html: one file that needs no network, made of what a command's other files hold (docs/report-page.md). A section is a component:
// one file in sections/, registered by name; it sees result.json and the other files, so that it needs to know no command.
#pragma once

#include <filesystem>
#include <iosfwd>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "config/registry.hpp"
#include "sim/report/page/html.hpp"
#include "sim/report/page/timeline_view.hpp"
#include "sim/report/report.hpp"

namespace rehearse::sim {

// The section of a command that was asked for report.html (--html).
struct PageWanted {};

namespace page {

struct Input {
  Json result;                               // of result.json, or of what stands for it (methods.json); null: neither
  std::map<std::string, std::string> files;  // by name: text of memory.csv, history.jsonl, resolved-job.yaml, ...
  std::optional<TimelineView> timeline;

  [[nodiscard]] const std::string* file(const std::string& name) const;
  // Of the result: whether there is a member, by JSON pointer.
  [[nodiscard]] bool has(const std::string& pointer) const { return result.contains(Json::json_pointer(pointer)); }
  [[nodiscard]] const Json& at(const std::string& pointer) const { return result.at(Json::json_pointer(pointer)); }
};

// What a command found out, or the folder that it wrote. Both give the same page. Throws config::InputError where the folder holds no
// result or a file of it cannot be read.
[[nodiscard]] Input input_of(const Report& report);
[[nodiscard]] Input input_of(const std::filesystem::path& folder);

class Section {
 public:
  static constexpr std::string_view kind = "section of the report page";
  virtual ~Section() = default;

  [[nodiscard]] virtual int order() const = 0;  // of sections on the page; the smallest comes first
  [[nodiscard]] virtual std::string_view title() const = 0;
  [[nodiscard]] virtual bool applies(const Input& input) const = 0;
  [[nodiscard]] virtual std::string html(const Input& input) const = 0;  // without the heading
};
// The name is the section's id on the page.
using SectionRegistry = config::Registry<Section>;

// The same input gives the same bytes.
void write(const Input& input, std::ostream& out);

}  // namespace page
}  // namespace rehearse::sim
