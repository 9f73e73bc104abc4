// The first of two parsers: libyaml, thirty times as fast as yaml-cpp, which reads what this one leaves and words every refusal.
#pragma once

#include "config/tree.hpp"

namespace rehearse::config {

// The tree of a text that has passed check_text(), exactly the one that parse_with_yaml_cpp() makes of it. Null where libyaml or the
// TreeBuilder refuses the text, or where it holds what the two parsers may read differently. Arguments as parse_tree's.
[[nodiscard]] Tree parse_quickly(const std::string& text, const std::shared_ptr<const Source>& source, std::size_t skipped_bytes,
                                 const std::string& path);

}  // namespace rehearse::config
