// Options that come down to a --set of a key are named in complaints as they were given.
#pragma once

#include "config/input_error.hpp"

namespace CLI {
class App;
}

namespace rehearse::cli {

// "--set tune.keep=x:1:11: error: tune.keep must be a whole number, not 'x'" of `tune JOB --keep x`: "error: --keep must be ...".
[[nodiscard]] config::InputError as_given(const config::InputError& error, const CLI::App& command);

}  // namespace rehearse::cli
