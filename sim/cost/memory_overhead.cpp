// Reading the `memory` of platforms/software/*.yaml.
#include "sim/cost/gpu.hpp"

namespace rehearse::sim {

MemoryOverhead read_memory_overhead(const config::Node& node) {
  node.allow_keys({"context", "communicator", "fragmentation", "buckets", "gradient_placeholders", "half_gradients", "sharded_master"});
  MemoryOverhead memory;
  memory.context_bytes = node.at("context").as_quantity(config::Dimension::bytes);
  memory.communicator_bytes = node.at("communicator").as_quantity(config::Dimension::bytes);
  memory.fragmentation = node.at("fragmentation").as_number(0, 1);
  memory.habits.bucket_bytes = node.at("buckets").as_quantity(config::Dimension::bytes);
  memory.habits.gradient_placeholders = node.at("gradient_placeholders").as_bool();
  memory.habits.half_gradients = node.at("half_gradients").as_bool();
  memory.habits.sharded_master = node.at("sharded_master").as_bool();
  return memory;
}

}  // namespace rehearse::sim
