// Pipeline stages that share NICs or host memories and end at different times: each has of them what the others leave while they are at
// work.
#pragma once

#include <array>
#include <span>
#include <vector>

namespace rehearse::sim {

// What a stage does when it has come so far, in two turns with a pause between them (a second turn of 0 s: there is none).
struct StageWork {
  struct Turn {
    double alone_s = 0;   // while no other stage is at work
    double shared_s = 0;  // while all are that it shares with
  };
  double begin_s = 0;
  std::array<Turn, 2> turns{};
  double pause_s = 0;
};

// When each ends. users: [stage * stages + other] how many GPUs of the other stage use what a GPU of the stage does; the time grows with
// those that are at work.
void share_among_stages(std::span<const StageWork> works, std::span<const double> users, std::vector<double>& end_s);

}  // namespace rehearse::sim
