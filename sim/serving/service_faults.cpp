#include "sim/serving/service_faults.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <optional>

#include "sim/faults/item_words.hpp"
#include "sim/faults/step_faults.hpp"
#include "sim/serving/placement.hpp"
#include "sim/serving/service_links.hpp"

namespace rehearse::sim {
namespace {

constexpr const char* examples =
    "for example 'instance decode.2 at 120 s for 90 s', 'gpu 17 at 60 s', 'node 1 at 60 s for 5 min', 'gpu 3 slow 1.5 from 10 s for 60 s', "
    "'nic 3 slow 4', 'nic 3 down from 10 s for 5 s', 'rail 0 at 60 s', 'link leaf0 spine1 slow 2', 'spine lost'";

class FaultReading {
 public:
  FaultReading(const config::Node& item, const ServingJob& job)
      : words_(item, item.as_string(), examples), job_(job), places_(places_of(job)), links_(job) {}

  ServiceFault fault() {
    fault_.text = words_.text();
    const std::string what = words_.next();
    if (what == "instance") {
      fault_.instances = {named_instance(words_.next())};
    } else if (what == "gpu") {
      const auto [part, gpu] = in_part(words_.whole_number(), 1, what);
      fault_.instances = instances_on(part, gpu, gpu + 1);
    } else if (what == "node") {
      const auto [part, first] = in_part(words_.whole_number(), 0, what);
      fault_.instances = instances_on(part, first, first + job_.parts[part].cluster.gpus_per_node);
    } else {
      links(what);
    }
    happening(what);
    words_.expect_end();
    return std::move(fault_);
  }

 private:
  void links(const std::string& what) {
    if (what != "nic" && what != "rail" && what != "link" && what != "spine")
      words_.refuse(fmt::format("'{}' is nothing that can fail: instance, gpu, node, nic, rail, link or spine", what));
    if (!job_.uses_network())
      words_.fail("nothing is handed over between two sides: what its network carries is in the price of its passes");
    if (what == "nic") {
      const auto [part, gpu] = in_part(words_.whole_number(), 1, what);
      port(part, gpu);
    } else if (what == "rail") {
      const int rail = words_.whole_number();
      fault_.links = links_.rail(rail);
      if (fault_.links.empty()) words_.fail(fmt::format("no node has a port {}", rail));
    } else if (what == "link") {
      const std::string from = words_.next(), to = words_.next();
      fault_.links = links_.named(from, to);
      if (fault_.links.empty())
        words_.fail(fmt::format("no link leads from '{}' to '{}': links.csv names their ends, after 'PART/' where the cluster has parts",
                                from, to));
    } else {
      fault_.links = links_.trunks();
      if (fault_.links.empty()) words_.fail("nothing joins switches there, and there are no spines");
    }
  }

  // What happens to it, and when.
  void happening(const std::string& what) {
    const bool of_links = !fault_.links.empty(), of_spines = what == "spine";
    const std::string how = words_.next();
    fault_.for_s = INFINITY;
    if (how == "at" && !of_spines) {
      if (of_links) fault_.kind = ServiceFault::Kind::cut;
      fault_.from_s = words_.any_time_s();
      if (words_.take("for")) {
        fault_.for_s = words_.any_time_s();
        again();
      }
      return;
    }
    if (how != "slow" && !(how == "down" && of_links && !of_spines) && !(how == "lost" && of_spines))
      words_.refuse(fmt::format("'{}' is not what happens to it: {}", how,
                                of_spines  ? "slow or lost"
                                : of_links ? "at, slow or down"
                                           : "at or slow"));
    fault_.kind = of_links ? ServiceFault::Kind::link : ServiceFault::Kind::slows;
    fault_.times = how == "down" ? down_slowdown : how == "lost" ? without_one_spine() : words_.slowdown();
    if (words_.take("from")) {
      fault_.from_s = words_.any_time_s();
      if (!words_.take("for")) words_.refuse("how long is missing: from TIME for TIME");
      fault_.for_s = words_.any_time_s();
      again();
    } else if (how == "down") {
      words_.refuse(fmt::format("a {} is down from TIME for TIME", what == "link" ? "link" : "port"));
    }
  }

  void again() {
    if (!words_.take("every")) return;
    fault_.every_s = words_.any_time_s();
    if (fault_.every_s <= fault_.for_s) words_.fail("it comes again before it is over");
  }

  // The others carry its traffic.
  double without_one_spine() {
    const std::optional<int> spines = links_.spines();
    if (!spines) words_.fail("the cluster does not say how many spines it has, or its parts differ");
    if (*spines < 2) words_.fail("the cluster has one spine, and one must be left");
    return static_cast<double>(*spines) / (*spines - 1);
  }

  std::size_t named_instance(const std::string& name) {
    const std::size_t dot = name.rfind('.');
    std::size_t first = 0;
    std::vector<std::string> names;
    for (const Pool& pool : job_.pools) {
      names.push_back(pool.name);
      if (dot != std::string::npos && name.substr(0, dot) == pool.name) {
        const auto number = number_of<int>(std::string_view(name).substr(dot + 1));
        if (!number || *number < 0 || *number >= pool.instances)
          words_.fail(fmt::format("pool {} has instances 0 to {}: there is no {}", pool.name, pool.instances - 1, name));
        return first + static_cast<std::size_t>(*number);
      }
      first += static_cast<std::size_t>(pool.instances);
    }
    words_.refuse(fmt::format("'{}' is no instance: a pool ({}), a dot and its number", name, fmt::format("{}", fmt::join(names, ", "))));
  }

  // Parts one after another; `each` 1: GPUs, 0: nodes, whose first GPU it is.
  std::pair<std::size_t, int> in_part(int number, int each, const std::string& what) {
    int left = number, all = 0;
    for (std::size_t part = 0; part < job_.parts.size(); ++part) {
      const int unit = each > 0 ? 1 : job_.parts[part].cluster.gpus_per_node, count = gpus_of_part(job_, part) / unit;
      if (left < count) return {part, left * unit};
      left -= count;
      all += count;
    }
    words_.fail(fmt::format("there is no {} {}: the cluster has {}", what == "node" ? "node" : "GPU", number, all));
  }

  std::vector<std::size_t> instances_on(std::size_t part, int first_gpu, int end_gpu) {
    std::vector<std::size_t> out;
    std::size_t index = 0;
    for (std::size_t pool = 0; pool < job_.pools.size(); ++pool) {
      for (const int first : places_[pool]) {
        const bool there = job_.pools[pool].part == part && first < end_gpu && first + job_.pools[pool].plan.gpus() > first_gpu;
        if (there) out.push_back(index);
        ++index;
      }
    }
    return out;
  }

  void port(std::size_t part, int gpu) {
    if (job_.parts[part].cluster.network.kind == topology::Network::none) words_.fail("that part has no network, and no ports");
    if (instances_on(part, gpu, gpu + 1).empty()) words_.fail("no instance stands on that GPU");
    fault_.links = links_.port(part, gpu);
    if (fault_.links.empty()) words_.fail("that GPU has no network port");
  }

  ItemWords words_;
  const ServingJob& job_;
  std::vector<std::vector<int>> places_;
  ServiceLinks links_;
  ServiceFault fault_;
};

}  // namespace

ServiceFault read_service_fault(const config::Node& item, const ServingJob& job) { return FaultReading(item, job).fault(); }

}  // namespace rehearse::sim
