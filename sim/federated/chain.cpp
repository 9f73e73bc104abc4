#include "sim/federated/chain.hpp"

namespace rehearse::federated {

std::vector<Cut> cuts_of(const Chain& chain) {
  std::vector<Cut> cuts;
  Cut held{.name = "", .kept_bytes = chain.input_elements * chain.element_bytes, .measured_leakage = {}};
  for (const Unit& unit : chain.units) {
    held.name = unit.name;
    held.forward_flops += unit.forward_flops;
    held.parameter_bytes += unit.parameters * chain.element_bytes;
    held.kept_bytes += unit.kept_elements * chain.element_bytes;
    held.smashed_bytes = unit.output_elements * chain.element_bytes;
    held.measured_leakage = unit.leakage;
    cuts.push_back(held);
  }
  cuts.back().name = no_cut;  // behind the last unit nothing is left to offload
  cuts.back().smashed_bytes = 0;
  cuts.back().measured_leakage = 0;
  return cuts;
}

}  // namespace rehearse::federated
