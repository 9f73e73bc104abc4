// Links of the network between instances, by the names that faults have for them (docs/serving.md, "Failures").
#pragma once

#include <compare>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/serving/service_fault.hpp"
#include "sim/serving/serving_job.hpp"
#include "topology/fabric.hpp"

namespace rehearse::sim {

class ServiceLinks {
 public:
  using Links = std::vector<ServiceLink>;  // both directions
  explicit ServiceLinks(const ServingJob& job)
      : job_(job), fabrics_(job.parts.size()), ports_(job.parts.size()) {}  // the job must outlive it

  // The network port of a GPU of a part; empty where it has none.
  [[nodiscard]] Links port(std::size_t part, int gpu);
  // Port `rail` of every node.
  [[nodiscard]] Links rail(int rail);
  // Between switches.
  [[nodiscard]] Links trunks();
  // How many spines each part with trunks has; nothing where they differ or one does not say.
  [[nodiscard]] std::optional<int> spines() const;
  // From one end to the other, named as links.csv does, with "PART/" before it where the cluster has parts; or between two parts.
  [[nodiscard]] Links named(const std::string& from, const std::string& to);

 private:
  struct Port {
    int node = 0, rail = 0;
    friend auto operator<=>(const Port&, const Port&) = default;  // NOLINT(modernize-use-nullptr): the 0 it compares with
  };
  [[nodiscard]] const std::map<Port, Links>& ports(std::size_t part);
  [[nodiscard]] const topology::Fabric& fabric(std::size_t part);
  [[nodiscard]] std::optional<std::size_t> part_named(const std::string& name) const;

  const ServingJob& job_;
  std::vector<std::shared_ptr<const topology::Fabric>> fabrics_;  // these are made when asked for
  std::vector<std::map<Port, Links>> ports_;
};

}  // namespace rehearse::sim
