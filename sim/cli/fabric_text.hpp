// A fabric described for people.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "topology/fabric.hpp"

namespace rehearse::cli {

// Vertices and links by kind, examples of routes, bisection and single points of failure.
void describe_fabric(const topology::Fabric& fabric, bool bold, std::ostream& out);

// What --check finds wrong: switches whose loss separates GPUs, GPUs that cannot reach one another. Empty when all is well.
[[nodiscard]] std::vector<std::string> faults_of(const topology::Fabric& fabric);

}  // namespace rehearse::cli
