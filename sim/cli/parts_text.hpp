// A cluster with parts (docs/serving.md) for people, and as a picture.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "config/node.hpp"
#include "sim/serving/serving_job.hpp"
#include "topology/fabric.hpp"

namespace rehearse::cli {

class ClusterOfParts {
 public:
  // A mapping with `parts`, and `between` where it has it. Throws InputError.
  explicit ClusterOfParts(const config::Node& cluster);

  void describe(bool bold, std::ostream& out) const;  // each part, then what joins them
  void write_dot(std::ostream& out) const;
  // What is wrong with a part, its name before it.
  [[nodiscard]] std::vector<std::string> faults() const;

 private:
  struct Joint;
  [[nodiscard]] std::vector<Joint> joints() const;

  sim::ServingJob job_;  // of which the parts alone are there
  std::vector<topology::Fabric> fabrics_;
};

}  // namespace rehearse::cli
