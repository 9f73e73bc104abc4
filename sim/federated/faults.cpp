#include "sim/federated/faults.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <sstream>

namespace rehearse::federated {
namespace {

constexpr const char* forms = "device 3 slow 4; device 3 at 12 s; uplink slow 2 from 10 s for 5 s; server at 30 s";

class FaultText {
 public:
  FaultText(const Job& job, const std::string& text, const Refuse& refuse) : job_(job), text_(text), refuse_(refuse) {
    std::istringstream words(text);
    for (std::string word; words >> word;) words_.push_back(word);
  }

  void add_to(Conditions& conditions) {
    const SlowSpell::What what = component();
    const std::size_t device = what == SlowSpell::What::device ? device_number() : 0;
    const std::string verb = next("slow or at");
    if (verb == "slow") {
      SlowSpell spell{.what = what, .device = device, .factor = factor()};
      times(spell);
      conditions.slow.push_back(spell);
    } else if (verb == "at") {
      fail(what, device, time(), conditions);
    } else {
      no(fmt::format("'{}' is neither slow nor at", verb));
    }
    if (at_ < words_.size()) no(fmt::format("'{}' says nothing here", words_[at_]));
  }

 private:
  [[noreturn]] void no(const std::string& why) const {
    refuse_(fmt::format("fault {}: {}", config::shown(text_), why), forms);
    throw std::logic_error("refused");
  }

  std::string next(const char* wanted) {
    if (at_ == words_.size()) no(fmt::format("{} is missing", wanted));
    return words_[at_++];
  }

  SlowSpell::What component() {
    const std::string word = next("device, uplink, downlink or server");
    if (word == "device") return SlowSpell::What::device;
    if (word == "uplink") return SlowSpell::What::uplink;
    if (word == "downlink") return SlowSpell::What::downlink;
    if (word != "server") no(fmt::format("unknown component '{}'; known: device, uplink, downlink, server", word));
    return SlowSpell::What::server;
  }

  // A number from 0, or a name, which may hold a space ("pi 3").
  std::size_t device_number() {
    const std::string word = next("which device");
    std::size_t number = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
    if (error == std::errc() && end == word.data() + word.size()) {
      if (number >= job_.devices.size()) no(fmt::format("there are devices 0 to {}", job_.devices.size() - 1));
      return number;
    }
    const std::string two = at_ < words_.size() ? word + " " + words_[at_] : word;
    for (std::size_t n = 0; n < job_.devices.size(); ++n) {
      const std::string name = job_.device_name(n);
      if (name == word) return n;
      if (name != two) continue;
      ++at_;
      return n;
    }
    no(fmt::format("no device is called '{}'", word));
  }

  double factor() {
    const std::string word = next("how many times slower");
    double factor = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), factor);
    if (error != std::errc() || end != word.data() + word.size() || !(factor >= 1 && factor <= 1e6))
      no("a factor is a number from 1 to 1e6");
    return factor;
  }

  double time() {
    std::string words = next("a time");
    if (at_ < words_.size() && std::isalpha(static_cast<unsigned char>(words_[at_][0])) != 0 && words_[at_] != "for" &&
        words_[at_] != "from") {
      words += " " + words_[at_++];
    }
    std::string why;
    const auto seconds = config::parse_quantity(words, config::Dimension::time, why);
    if (!seconds || *seconds < 0) no(why.empty() ? "a time is not below 0" : why);
    return *seconds;
  }

  void times(SlowSpell& spell) {
    while (at_ < words_.size()) {
      const std::string word = next("from or for");
      if (word != "from" && word != "for") no(fmt::format("'{}' is neither from nor for", word));
      (word == "from" ? spell.from_s : spell.for_s) = time();
    }
  }

  void fail(SlowSpell::What what, std::size_t device, double at_s, Conditions& conditions) const {
    if (what == SlowSpell::What::server) {
      conditions.server_fails_at_s = std::min(conditions.server_fails_at_s, at_s);
      return;
    }
    if (what != SlowSpell::What::device) no("a medium is slow; only devices and the server fail");
    conditions.leaves_at_s.resize(job_.devices.size(), never);
    conditions.leaves_at_s[device] = std::min(conditions.leaves_at_s[device], at_s);
  }

  const Job& job_;
  const std::string& text_;
  const Refuse& refuse_;
  std::vector<std::string> words_;
  std::size_t at_ = 0;
};

}  // namespace

void add_fault(const Job& job, const std::string& text, const Refuse& refuse, Conditions& conditions) {
  FaultText(job, text, refuse).add_to(conditions);
}

double deadline_s(const Job& job) {
  const RoundDeadline& deadline = job.settings.deadline;
  if (deadline.seconds > 0) return deadline.seconds;
  if (deadline.quantile == 0) return never;
  const CutChoice cuts = own_best_cuts(job, 1 / static_cast<double>(job.devices.size()));
  std::vector<double> latencies_s = plan_with_shares(job, cuts, equal_shares(job, cuts)).latency_s;
  std::ranges::sort(latencies_s);
  const auto rank = static_cast<std::size_t>(std::ceil(deadline.quantile * static_cast<double>(latencies_s.size())));
  return latencies_s[std::max<std::size_t>(rank, 1) - 1];
}

Conditions conditions_of(const Job& job, const std::vector<std::string>& more) {
  Conditions conditions;
  conditions.deadline_s = deadline_s(job);
  if (job.settings.faults_node) {
    for (const config::Node& node : job.settings.faults_node.items()) {
      add_fault(
          job, node.as_string(), [&](std::string_view why, std::string_view hint) { node.fail(why, hint); }, conditions);
    }
  }
  for (const std::string& text : more) {
    add_fault(
        job, text, [](std::string_view why, std::string_view hint) { throw config::InputError(why, hint); }, conditions);
  }
  return conditions;
}

}  // namespace rehearse::federated
