// Colours, type and layout of report.html, and the few lines of script that sort and search its tables.
#pragma once

#include <string_view>

namespace rehearse::sim::page {

extern const std::string_view style;
extern const std::string_view script;
// Base64 of SHA-256 of the script, for the content security policy; a browser refuses the script when it is not (tests/web).
extern const std::string_view script_sha256;

}  // namespace rehearse::sim::page
