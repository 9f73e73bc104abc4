// The message with which an action refuses its input.
#pragma once

#include <string>

#include "config/input_error.hpp"

namespace rehearse::config {

template <class Action>
std::string refusal_of(Action&& action) {
  try {
    static_cast<void>(action());
  } catch (const InputError& error) {
    return error.what();
  }
  return "(accepted)";
}

}  // namespace rehearse::config
