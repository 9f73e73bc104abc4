// The vocabulary-parallel look-up, learned positions, dropout, and the reduction over tp.
#include "workloads/operators/section.hpp"

namespace rehearse::workloads {
namespace {

// Forward: a row in, a row out, per token. Backward: PyTorch fills a dense gradient of the table, adds the tokens' rows to it, and adds it
// to the gradient buffer; the head's gradient is there before that of a table that both read.
Section look_up(const Workload& workload, const Shard& shard) {
  const double states = static_cast<double>(shard.tokens * shard.hidden);
  const double table = static_cast<double>(shard.vocab * shard.hidden);
  Section section = pointwise("embedding", {.forward_bytes = 2 * states * shard.state}, OperatorClass::embedding);
  const double gradient = bytes_of(workload.precision.gradients);
  const double added = workload.model.tied_embeddings && ends_meet(workload) ? 1 : added_share(workload);
  const double of_table = shard.state + added * (shard.state + 2 * gradient);
  Operator op = memory_bound("embedding", 3 * states * shard.state + table * of_table, Pass::backward_weight, 3);
  op.cls = OperatorClass::embedding;
  section.backward.emplace_back(std::move(op));
  section.parameters = table;
  return section;
}

Section reduction(const Shard& shard) {
  Section section;
  if (shard.head_tp == 1) return section;
  Communication communication;
  communication.kind = shard.sp ? CollectiveKind::reduce_scatter : CollectiveKind::all_reduce;
  communication.name = "embedding " + std::string(name_of(communication.kind));
  communication.bytes = static_cast<double>(shard.tokens * shard.hidden) * shard.state;
  section.forward.emplace_back(communication);
  if (shard.sp) {
    communication.kind = CollectiveKind::all_gather;
    communication.name = "embedding " + std::string(name_of(communication.kind));
    communication.pass = Pass::backward_input;
    section.backward.emplace_back(communication);
  }
  return section;
}

Section position_sum(const Workload& workload, const Shard& shard) {
  const double bytes = static_cast<double>(shard.spread_tokens * shard.hidden) * shard.state;
  Section section = pointwise("positions", {.forward_bytes = 3 * bytes, .backward_bytes = bytes}, OperatorClass::embedding);
  section.parameters = static_cast<double>(workload.batch.sequence) * static_cast<double>(shard.hidden);
  return section;
}

Section dropout(const Shard& shard) {
  const double bytes = static_cast<double>(shard.spread_tokens * shard.hidden) * (2 * shard.state + 1);
  return pointwise("embedding_dropout", {.forward_bytes = bytes, .backward_bytes = bytes});
}

}  // namespace

BlockProgram embedding_program(const Workload& workload) {
  if (workload.model.vocab == 0) return {};
  const Shard shard = shard_of(workload);
  std::vector<Section> sections{look_up(workload, shard), reduction(shard)};
  if (workload.model.positions == Positions::learned) sections.push_back(position_sum(workload, shard));
  if (shard.dropout) sections.push_back(dropout(shard));
  BlockProgram program = assemble(sections);
  if (workload.lora.on()) program.backward = {frozen("embedding")};  // nothing before it asks for a gradient
  return program;
}

}  // namespace rehearse::workloads
