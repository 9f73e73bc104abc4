// The spaces that a word names.
#include <fmt/format.h>

#include "sim/tune/space.hpp"
#include "workloads/schedule.hpp"

namespace rehearse::sim {
namespace {

using config::Node;

struct Row {
  const char* key;
  const char* values;
  bool experts = false;  // of models that have them only
};

// What Megatron-Core runs. Divisors keep the layers alike; powers of two may leave the stages uneven where there are no chunks.
constexpr Row megatron_core[] = {
    {"parallel.tp", "divisors"},
    {"parallel.cp", "[1, 2, 4, 8, 16]"},
    {"parallel.pp", "[divisors, powers-of-two]"},
    {"parallel.ep", "powers-of-two", true},
    {"parallel.etp", "[1, 2, 4, 8]", true},
    {"parallel.vpp", "divisors"},
    {"batch.micro", "[1, 2, 4, 8, 16]"},
    {"recompute", "[none, selective, full]"},
    {"optimizer.sharding", "[none, zero1]"},
    {"overlap.tp", "both"},
    {"overlap.dp_gradients", "both"},
};

// MoFa (section 4): t, p, d, c, e, b, v, and its features, equations (16)-(35).
constexpr Row mofa[] = {
    {"parallel.tp", "powers-of-two"},
    {"parallel.cp", "[1, 2, 4, 8]"},
    {"parallel.pp", "powers-of-two"},
    {"parallel.ep", "powers-of-two", true},
    {"parallel.vpp", "[1, 2, 4, 8, 16]"},
    {"batch.micro", "[1, 2, 4]"},
    {"recompute", "[none, selective, full]"},
    {"offload.activations", "both"},
    {"optimizer.sharding", "[none, zero1]"},
    {"optimizer.device", "[gpu, cpu]"},
    {"overlap.tp", "both"},
    {"overlap.ep", "both", true},
    {"overlap.pp", "both"},
    {"overlap.dp_gradients", "both"},
};

}  // namespace

NamedSpace named_space(const std::string& name, const Job& open) {
  const std::string where = std::string(named_space_prefix) + name;
  NamedSpace space;
  for (const Row& row : name == "mofa" ? std::span<const Row>(mofa) : std::span<const Row>(megatron_core)) {
    if (row.experts && !open.workload.model.moe) continue;
    space.axes.push_back({row.key, Node::load_text(row.values, where)});
  }
  const Node nowhere = Node::load_text("together", where);
  space.together = {{"parallel.sp", "parallel.tp > 1", nowhere}, {"overlap.dp_parameters", "overlap.dp_gradients", nowhere}};
  const std::string_view one_chunk = workloads::usual_schedule(1), chunks = workloads::usual_schedule(2);
  if (open.workload.schedule == one_chunk || open.workload.schedule == chunks)
    space.together.push_back({"schedule", fmt::format("parallel.vpp > 1 ? {} : {}", chunks, one_chunk), nowhere});
  return space;
}

}  // namespace rehearse::sim
