// The keys of a job with the section `federated`, as they are read.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "config/keys.hpp"
#include "sim/federated/device.hpp"
#include "sim/solver.hpp"

namespace rehearse::federated {

enum class ServerMode { per_device, sequential, batched };  // a server model per device; one for all, batch by batch; one joined batch
enum class Objective { round, sum };
enum class Retune { once, every_round };
enum class Granularity { batch, round };

struct Server {
  double flop_per_s = 0;
  ServerMode mode = ServerMode::per_device;
  Sharing sharing = Sharing::reserved;
};

struct Leakage {
  std::string measure = "parameters";
  double limit = 1;
};

// `cuts`: a word (tuned, random, none, a unit's name) for all, a word per entry of the devices, or each device's cut from a file.
struct CutRule {
  std::string for_all = "tuned";
  std::map<std::string, std::string> by_entry;
  config::Node file;  // CSV: name, cut
  [[nodiscard]] bool one_word() const { return by_entry.empty() && !file; }
  [[nodiscard]] bool tuned() const { return one_word() && for_all == "tuned"; }
};

// `shares`: a word, or each device's shares from a file.
struct ShareRule {
  std::string word = "tuned";  // tuned | equal | proportional | file
  config::Node file;           // CSV: name, uplink, downlink, server; a column cut is somebody else's
};

struct Selection {
  std::int64_t devices = 0;  // 0: all
  double over = 1;
};

struct RoundDeadline {
  double seconds = 0;   // 0: none
  double quantile = 0;  // of the latencies by formula with equal shares; 0: none
};

struct ServerFailures {
  double mtbf_s = 0;  // 0: it never fails
  double repair_s = 0;
};

struct Settings {
  config::Node model, faults_node;
  std::string name;
  std::vector<Entry> entries;
  Server server;
  Radio radio;
  std::int64_t batch = 32;
  std::int64_t epochs = 1;
  std::optional<int> sequence;
  double element_bytes = 4;
  double label_bytes = 0;
  bool broadcast = false;  // the mean of all gradients goes down once, to everybody
  int quantize_bits = 0;   // 0: as the model's elements
  CutRule cuts;
  ShareRule shares;
  Objective objective = Objective::round;
  Leakage leakage;
  Selection select;
  RoundDeadline deadline;
  double dropout = 0;
  Retune retune = Retune::once;
  ServerFailures server_failures;
  std::int64_t rounds = 1;
  Granularity granularity = Granularity::batch;
  sim::Solver solver = sim::Solver::automatic;
  std::uint64_t seed = 1;
};

[[nodiscard]] const config::Keys<Settings>& job_keys();

}  // namespace rehearse::federated
