// The beginning of a graph in Graphviz's language, as Fabric::write_dot writes it.
#pragma once

#include <ostream>
#include <string>

namespace rehearse::topology {

void begin_dot(const std::string& name, std::ostream& out);

}  // namespace rehearse::topology
