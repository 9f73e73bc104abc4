// What a command found out, for reporters to write.
#pragma once

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <typeindex>
#include <utility>
#include <vector>

namespace rehearse::sim {

// What a report says about the job. What a kind of job does not have stays empty.
struct JobSummary {
  std::string name, model, cluster, gpu;
  std::string layout;  // "tp 8, pp 4, dp 4, 1f1b, zero1"
  std::string batch;   // "512 sequences of 4096, micro-batch 1"
  int gpus = 0;
  double gpu_memory_bytes = 0;
  std::uint64_t seed = 0;
  std::string input_hash;
  std::string resolved_yaml;
  std::vector<std::string> faults = {};  // of the simulated step, one by one; what was drawn at random is written out
};

// Everything one command found out: sections, at most one of each type. Who finds something out has a struct for it and adds it; a reporter
// asks for the types that it knows. Nothing here has a list of them.
class Report {
 public:
  Report() = default;
  // `family`: which reporters speak to the console and with --json, "FAMILYconsole" and "FAMILYjson".
  explicit Report(JobSummary about, std::string its_family = "") : job(std::move(about)), family(std::move(its_family)) {}

  JobSummary job = {};
  std::string family;
  bool colour = false;  // the console only

  // Kept by its address: the section must outlive the report. nullptr: nothing is added.
  template <class Section>
  Report& add(const Section* section) {
    if (section != nullptr) put(typeid(Section), {std::shared_ptr<const void>(), section});
    return *this;
  }
  template <class Section>
  Report& add(std::shared_ptr<const Section> section) {
    if (section) put(typeid(Section), std::move(section));
    return *this;
  }
  template <class Section>
  Report& own(Section section) {
    return add(std::make_shared<const Section>(std::move(section)));
  }

  // nullptr: there is none.
  template <class Section>
  [[nodiscard]] const Section* find() const {
    for (const auto& [type, section] : sections_) {
      if (type == std::type_index(typeid(Section))) return static_cast<const Section*>(section.get());
    }
    return nullptr;
  }
  template <class Section>
  [[nodiscard]] bool has() const {
    return find<Section>() != nullptr;
  }
  // Throws std::logic_error when there is none.
  template <class Section>
  [[nodiscard]] const Section& get() const {
    if (const Section* section = find<Section>()) return *section;
    throw std::logic_error(std::string("the report has no section ") + typeid(Section).name());
  }

 private:
  void put(std::type_index type, std::shared_ptr<const void> section) {
    for (auto& [known, held] : sections_) {
      if (known == type) throw std::logic_error(std::string("the report has two sections ") + type.name());
    }
    sections_.emplace_back(type, std::move(section));
  }
  std::vector<std::pair<std::type_index, std::shared_ptr<const void>>> sections_;
};

}  // namespace rehearse::sim
