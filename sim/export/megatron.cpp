// Megatron-LM: a launch script.
#include <numeric>
#include <ostream>

#include "sim/export/exporter.hpp"
#include "sim/export/megatron_parts.hpp"

namespace rehearse::sim {
namespace {

void write_script(const Job& job, const Arguments& arguments, std::ostream& out) {
  const int gpus = job.system.gpus, per_node = std::gcd(gpus, job.system.cluster.gpus_per_node);
  out << "#!/bin/bash\n"
      << "# " << job.name << ". On every node, with NODE_RANK and MASTER_ADDR set; data, tokenizer and learning rate as arguments.\n"
      << fmt::format("torchrun --nnodes {} --nproc_per_node {} ", gpus / per_node, per_node)
      << "--node_rank \"${NODE_RANK:-0}\" --master_addr \"${MASTER_ADDR:-localhost}\" --master_port 6000 \\\n"
      << (job.workload.model.pattern.empty() ? "  pretrain_gpt.py" : "  pretrain_mamba.py") << " \"$@\"";
  for (const std::string& line : arguments.lines()) out << " \\\n  " << line;
  out << '\n';
}

class MegatronScript final : public Exporter {
 public:
  [[nodiscard]] std::string_view summary() const override { return "Megatron-LM: a launch script with its arguments"; }
  [[nodiscard]] std::string_view read_by() const override { return "megatron"; }
  [[nodiscard]] std::vector<ExportedFile> files(const Job& job) const override {
    Arguments arguments;
    write_megatron_model(job, arguments);
    write_megatron_plan(job, arguments);
    return {{"", [&job, arguments](std::ostream& out) { write_script(job, arguments, out); }}};
  }
};

const ExporterRegistry::Registration<MegatronScript> megatron_script_registration("megatron");

}  // namespace
}  // namespace rehearse::sim
