// A model as a chain of units that can be cut behind any unit but the last: what stays on a device and what crosses the cut.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "config/names.hpp"
#include "config/node.hpp"
#include "config/shape.hpp"

namespace rehearse::federated {

// Per sample (an image, a sequence). A multiply-add is 2 FLOPs.
struct Unit {
  std::string name;
  double forward_flops = 0;
  double parameters = 0;
  double output_elements = 0;
  double kept_elements = 0;       // for backward
  std::optional<double> leakage;  // measured, of a cut behind this unit
};

struct Chain {
  std::string name;
  double input_elements = 0;
  double element_bytes = 4;
  bool tied = false;  // the last unit needs the first one's matrix: cannot be split
  std::vector<Unit> units;
};

// A cut behind a unit, or none (the last one): the device holds the whole model. Sums over the units that the device holds.
struct Cut {
  std::string name;  // of the unit; "none"
  double forward_flops = 0;
  double parameter_bytes = 0;
  double smashed_bytes = 0;  // per sample, and its gradient as many; 0 without a cut
  double kept_bytes = 0;     // per sample: the input and what is kept of each unit
  std::optional<double> measured_leakage;
};
inline constexpr const char* no_cut = "none";

// Of every place where the chain can be cut, "none" last.
[[nodiscard]] std::vector<Cut> cuts_of(const Chain& chain);

// Bytes of an element by the name of its type.
[[nodiscard]] const config::Names<double>& element_types();

// A document with `kind: chain` (docs/federated.md, "Models"). Throws config::InputError.
[[nodiscard]] Chain read_chain(const config::Node& node, const std::string& name);
[[nodiscard]] config::Shape chain_shape();

// A dense transformer of workloads/models, cut between its blocks; a sample is one sequence. Throws config::InputError at `where` for
// models with experts.
[[nodiscard]] Chain transformer_chain(const config::Node& where, const config::Node& model, const std::string& name, int sequence,
                                      double element_bytes);

// What the job's `model` names: a ready-made chain, a ready-made transformer, a file, or a mapping.
struct ModelChoice {
  int sequence = 0;  // tokens of a sample; of transformers only
  double element_bytes = 4;
};
[[nodiscard]] Chain find_chain(const config::Node& field, const std::optional<config::Node>& sequence_node, const ModelChoice& choice);

}  // namespace rehearse::federated
