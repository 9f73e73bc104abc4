// Any text as a YAML scalar.
#pragma once

#include <string>
#include <string_view>

namespace rehearse::config {

// In double quotes, escaped so that it is read back as the same text.
[[nodiscard]] std::string yaml_text(std::string_view text);

}  // namespace rehearse::config
