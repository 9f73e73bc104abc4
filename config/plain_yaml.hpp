// The plain part of YAML, which our files are written in, read a hundred times as fast as by yaml-cpp.
#pragma once

#include "config/tree.hpp"

namespace rehearse::config {

// The tree of a text of block and flow mappings and lists, scalars on one line, quoted or not, and comments: exactly the one that
// parse_with_yaml_cpp() makes of it. Nothing where the text holds anything else or is refused; then yaml-cpp decides, in its words.
// Arguments as parse_tree's; the text has passed check_text().
[[nodiscard]] Tree parse_plain(std::string_view text, const std::shared_ptr<const Source>& source, std::size_t skipped_bytes,
                               const std::string& path);

}  // namespace rehearse::config
