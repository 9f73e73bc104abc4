#include "sim/cli/progress_bar.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <utility>

#include "sim/cli/terminal.hpp"

namespace rehearse::cli {
namespace {

constexpr int width = 40;  // characters between the brackets

}  // namespace

ProgressBar::ProgressBar(std::string what) : what_(std::move(what)), visible_(is_terminal(Stream::err)) {}

ProgressBar::~ProgressBar() {
  if (drawn_percent_ >= 0) std::fputs("\r\033[K", stderr);
}

void ProgressBar::update(double share, const std::string& note) {
  const int percent = static_cast<int>(100 * std::clamp(share, 0.0, 1.0));
  if (!visible_ || (percent == drawn_percent_ && note == drawn_note_)) return;
  drawn_percent_ = percent;
  drawn_note_ = note;
  fmt::print(stderr, "\r{} [{:<{}}] {:3} %{}\033[K", what_, std::string(static_cast<std::size_t>(width * percent / 100), '='), width,
             percent, note);
  std::fflush(stderr);
}

}  // namespace rehearse::cli
