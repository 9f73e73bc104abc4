// A bar on standard error, only when that is a terminal. It is wiped when the work is done.
#pragma once

#include <string>

namespace rehearse::cli {

class ProgressBar {
 public:
  explicit ProgressBar(std::string what);
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;
  ~ProgressBar();
  void update(double share, const std::string& note = "");  // 0..1, and what else there is to say

 private:
  std::string what_;
  bool visible_;
  int drawn_percent_ = -1;
  std::string drawn_note_;
};

}  // namespace rehearse::cli
