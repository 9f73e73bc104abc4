// Kinds of job other than training. A kind is registered under the name of its section: a job that has the section is of that kind, and the
// commands hand it over. One kind, one registration.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/node.hpp"
#include "config/registry.hpp"
#include "config/shape.hpp"
#include "sim/report/report.hpp"

namespace rehearse::sim {

struct JobRequest;

// An option that a command takes for jobs of this kind. Where the command has it for other kinds as well, its own words stand in --help.
struct KindOption {
  std::string name;   // "methods", without dashes
  std::string takes;  // "LIST"; "": a switch
  std::string means;
};

struct KindRequest {
  std::string name;       // of the job
  config::Node document;  // as it was written, with what was set; not yet read
  std::optional<std::uint64_t> seed;
  std::map<std::string, std::vector<std::string>> options;  // given, among the kind's own: name and values
  bool writes_files = false;                                // -o: whether timelines are wanted
  std::function<void(double)> progress;                     // share done; never empty

  // The value of an option that may be given once; nullptr: it was not.
  [[nodiscard]] const std::string* option(const std::string& option_name) const;
  [[nodiscard]] bool has(const std::string& option_name) const { return options.contains(option_name); }
};

struct KindAnswer {
  Report report;    // owns its sections; its family has a console and a JSON reporter
  bool yes = true;  // no: exit code 1, the report says why
};

class JobKind {
 public:
  static constexpr std::string_view kind = "kind of job";
  virtual ~JobKind() = default;

  // Those that it answers to, with the options that they take beside JOB, --set, --seed, --json and -o.
  [[nodiscard]] virtual std::map<std::string, std::vector<KindOption>> commands() const = 0;
  // Throws config::InputError with position where the job is wrong.
  [[nodiscard]] virtual KindAnswer answer(const std::string& command, const KindRequest& request) const = 0;
  // Of a line in `rehearse list jobs`; throws config::InputError with position where the job is wrong.
  [[nodiscard]] virtual JobSummary summary(const std::string& name, const config::Node& document) const = 0;
  // What comes out of a job, by the names of metrics that measured cases have (sim/validate/metric.hpp): by formula, or simulated. Models
  // are also looked up in `models`. Throws InputError where jobs of this kind have no answer.
  using Measures = std::map<std::string, double>;
  [[nodiscard]] virtual Measures predicted_measures(const std::string& name, const config::Node& document,
                                                    const config::Node& models) const;
  [[nodiscard]] virtual Measures simulated_measures(const std::string& name, const config::Node& document,
                                                    const config::Node& models) const;
  // All keys of a job of this kind.
  [[nodiscard]] virtual config::Shape shape() const = 0;
};

using JobKindRegistry = config::Registry<JobKind>;

// The section that says so, by which the kind is registered; "": training. Throws config::InputError where there are two, or one that is
// misspelt.
[[nodiscard]] std::string kind_of(const config::Node& document);
// Of the job that is asked for, whatever is set in it; "" as well where there is none, which whoever loads it says.
[[nodiscard]] std::string kind_of(const JobRequest& request);

// Throws config::InputError where jobs of the kind have no answer to the command.
[[nodiscard]] const JobKind& kind_with_answer(const std::string& kind, const std::string& command);
// What is asked of it: no options, no files, nobody who watches.
[[nodiscard]] KindRequest kind_request(const JobRequest& request);

}  // namespace rehearse::sim
