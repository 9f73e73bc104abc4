#include <fmt/format.h>

#include "config/data_dir.hpp"
#include "sim/federated/chain.hpp"
#include "sim/job/parts.hpp"
#include "workloads/model.hpp"

namespace rehearse::federated {
namespace {

constexpr sim::PartKind chain_part{"model", "workloads/chains"};

sim::Part part_of(const config::Node& field) {
  const bool ready_made = field.is_scalar() && !config::data_file(chain_part.folder, field.as_string()).empty();
  if (ready_made) return sim::find_part(field, chain_part);
  try {
    return sim::find_part(field, sim::model_part);
  } catch (const config::InputError&) {
    if (!field.is_scalar()) throw;
    std::vector<std::string> known = config::data_names(chain_part.folder);
    for (const std::string& name : config::data_names(sim::model_part.folder)) known.push_back(name);
    if (const std::string word = field.as_string(); word.find('/') != std::string_view::npos || word.ends_with(".yaml")) throw;
    field.fail(fmt::format("unknown model '{}'", field.as_string()), config::suggestion(field.as_string(), known));
  }
}

bool is_chain(const config::Node& node) { return node.is_map() && node.find("kind"); }

}  // namespace

Chain transformer_chain(const config::Node& where, const config::Node& document, const std::string& name, int sequence,
                        double element_bytes) {
  workloads::Model model = workloads::read_model(document, name);
  model.mtp = 0;  // a chain ends with the head
  if (model.moe) where.fail(fmt::format("{} has experts: only dense transformers can be cut into a chain", name));
  if (!model.plain_layers()) where.fail(fmt::format("{} has layers that differ (mixer, pattern): only like layers can be cut", name));
  if (model.vocab == 0) where.fail(fmt::format("{} has no embedding and no head", name));
  const workloads::ParameterCount count = workloads::count_parameters(model, sequence);
  const double tokens = sequence, outputs = tokens * model.hidden;
  const double head_flops = 2 * tokens * model.hidden * model.vocab;
  const double all_flops = workloads::model_flops_per_sequence(model, sequence, false) / 3;  // backward is twice the forward pass
  Chain chain{.name = name, .input_elements = tokens, .element_bytes = element_bytes, .tied = model.tied_embeddings, .units = {}};
  chain.units.push_back({"embedding", 0, count.embedding, outputs, outputs, {}});
  for (int layer = 1; layer <= model.layers; ++layer) {
    chain.units.push_back({fmt::format("block{}", layer), (all_flops - head_flops) / model.layers, count.layer, outputs, outputs, {}});
  }
  chain.units.push_back({"head", head_flops, count.final_norm + count.head, tokens * model.vocab, tokens * model.vocab, {}});
  return chain;
}

Chain find_chain(const config::Node& field, const std::optional<config::Node>& sequence_node, const ModelChoice& choice) {
  const sim::Part part = part_of(field);
  if (is_chain(part.node)) {
    if (sequence_node)
      sequence_node->fail_at_key("the samples of a chain are as its units say", "federated.sequence is of transformers only");
    return read_chain(part.node, part.name);
  }
  if (!sequence_node) field.fail("a transformer needs federated.sequence: a sample is a sequence of so many tokens", "for example 128");
  return transformer_chain(field, part.node, part.name, choice.sequence, choice.element_bytes);
}

}  // namespace rehearse::federated
