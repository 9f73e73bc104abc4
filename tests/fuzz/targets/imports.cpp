// What `rehearse import` reads, format by format, as far as the reader of the job, model or cluster that comes out of it.
#include "sim/import/finish.hpp"
#include "sim/import/importer.hpp"
#include "tests/fuzz/target.hpp"

namespace rehearse::fuzz {
namespace {

using Settings = std::vector<std::pair<std::string, std::string>>;

// What files often leave open.
Settings answers_to(const sim::Draft& draft) {
  const Settings known{{"cluster", "dgx-h100-ndr400"},
                       {"gpus", "64"},
                       {"gpu", "h100-sxm5-80g"},
                       {"model", "llama2-7b"},
                       {"model.vocab", "32000"},
                       {"batch.micro", "1"},
                       {"batch.global", "512"},
                       {"batch.sequence", "4096"},
                       {"intra_node.kind", "switch"},
                       {"recompute", "none"},
                       {"intra_node.bandwidth", "450 GB/s"}};
  Settings given;
  for (const auto& setting : known) {
    if (std::ranges::any_of(draft.needs, [&](const sim::Need& need) { return need.key == setting.first; })) given.push_back(setting);
  }
  return given;
}

class Import : public Target {
 public:
  void read(const std::string& input) const override {
    const std::string name(format());
    sim::Draft draft = sim::ImporterRegistry::get(name).read({scratch_file(name, input), ""});
    const Settings settings = answers_to(draft);
    if (sim::finish_import(std::move(draft), settings, name).summary.empty()) throw Nonsense("an import of nothing");
  }

 private:
  [[nodiscard]] virtual std::string_view format() const = 0;
};

#define REHEARSE_IMPORT(Class, target, name)                  \
  class Class final : public Import {                         \
    std::string_view format() const override { return name; } \
  };                                                          \
  const TargetRegistry::Registration<Class> Class##_target(target)

REHEARSE_IMPORT(DeepSpeed, "import_deepspeed", "deepspeed");
REHEARSE_IMPORT(HuggingFace, "import_hf", "hf");
REHEARSE_IMPORT(LlmFoundry, "import_llm_foundry", "llm-foundry");
REHEARSE_IMPORT(Megatron, "import_megatron", "megatron");
REHEARSE_IMPORT(MegatronBridge, "import_megatron_bridge", "megatron-bridge");
REHEARSE_IMPORT(Nanotron, "import_nanotron", "nanotron");
REHEARSE_IMPORT(NcclTests, "import_nccl_tests", "nccl-tests");
REHEARSE_IMPORT(NcclTopology, "import_nccl_topology", "nccl-topology");
REHEARSE_IMPORT(Nemo, "import_nemo", "nemo");
REHEARSE_IMPORT(NvidiaSmi, "import_nvidia_smi", "nvidia-smi");
REHEARSE_IMPORT(Torchtitan, "import_torchtitan", "torchtitan");

#undef REHEARSE_IMPORT

}  // namespace
}  // namespace rehearse::fuzz
