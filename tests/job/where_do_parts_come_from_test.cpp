#include <gtest/gtest.h>

#include <fstream>

#include "config/data_dir.hpp"
#include "tests/config/refusal.hpp"
#include "tests/job/sandbox.hpp"

namespace rehearse::sim {
namespace {

class WhereDoPartsComeFrom : public testing::Test {
 protected:
  void SetUp() override { enter_sandbox(); }
};

std::string job_with_model(const std::string& model) {
  return "model: " + model + "\ncluster: pod\ngpus: 16\nbatch: {global: 32, micro: 1, sequence: 2048}\n";
}

TEST_F(WhereDoPartsComeFrom, a_ready_made_name) { EXPECT_EQ(read_text(job_with_model("tiny")).workload.model.name, "tiny"); }

TEST_F(WhereDoPartsComeFrom, a_path_relative_to_the_job) {
  EXPECT_EQ(read_text(job_with_model("data/workloads/models/tiny.yaml")).workload.model.name, "tiny");
  const Job job = load_job({"data/workloads/jobs/small.yaml", {}, {}});
  EXPECT_EQ(job.workload.model.layers, 8);
}

TEST_F(WhereDoPartsComeFrom, a_mapping_with_or_without_a_name) {
  const std::string shape = "layers: 4, hidden: 64, heads: 4, ffn: 256, activation: gelu, vocab: 100}";
  EXPECT_EQ(read_text(job_with_model("{" + shape)).workload.model.name, "inline");
  EXPECT_EQ(read_text(job_with_model("{name: mine, " + shape)).workload.model.name, "mine");
}

TEST_F(WhereDoPartsComeFrom, a_gpu_inside_the_cluster) {
  const std::string gpu =
      "{name: mine, source: test, memory: 8 GiB, memory_bandwidth: 1 TB/s, power_limit: 100 W, launch: 3 us, peak: {bf16: 100 TFLOP/s}, "
      "efficiency: {gemm: {bf16: {model: roofline}}, attention: {bf16: {model: roofline}}, memory_bound: {model: roofline}}}";
  const Job job =
      read_text("model: tiny\ncluster: {gpu: " + gpu +
                ", gpus_per_node: 4, nodes: 1, intra_node: {kind: nvswitch, bandwidth: 300 GB/s, efficiency: 1, latency: 2 us}, "
                "host: {bandwidth: 25 GB/s, efficiency: 1, latency: 10 us}}\nbatch: {global: 32, micro: 1, sequence: 2048}\n");
  EXPECT_EQ(job.system.gpu.name, "mine");
  EXPECT_EQ(job.system.cluster.gpu, "mine");
  EXPECT_EQ(job.system.gpu.peak_flops_per_s.at(workloads::DType::bf16), 100e12);
  EXPECT_EQ(job.system.gpus, 4);
}

// A GPU's messages between nodes reach what its stack brings, or less where the way to its NIC is narrower.
TEST_F(WhereDoPartsComeFrom, a_network_that_the_stack_narrows) {
  const auto narrowed = [](const std::string& rate) {
    return read_text(job_with_model("tiny") + "software: {like: megatron-core, network_rate: " + rate + "}\n");
  };
  const auto to_nic = [](const Job& job) { return job.system.cluster.to_nic_bytes_per_s(); };
  const double plain = to_nic(read_text(job_with_model("tiny")));
  EXPECT_EQ(to_nic(narrowed("1.5 GB/s")), 1.5e9);
  EXPECT_EQ(to_nic(narrowed("900 TB/s")), plain > 0 ? plain : 900e12);
  EXPECT_EQ(to_nic(with_settings(narrowed("1.5 GB/s"), {{"software", "megatron-core"}})), plain);
}

TEST_F(WhereDoPartsComeFrom, another_one_that_they_are_like) {
  const Job changed =
      read_text(job_with_model("{like: tiny, layers: 4}") + "software: {like: megatron-core, flash: 2, fusions: {norm: false}}\n");
  const Job plain = read_text(job_with_model("tiny"));
  EXPECT_EQ(changed.workload.model.name, "tiny (changed)");
  EXPECT_EQ(changed.workload.model.layers, 4);
  EXPECT_EQ(changed.workload.model.hidden, plain.workload.model.hidden);
  EXPECT_EQ(changed.system.software.flash, 2);
  EXPECT_FALSE(changed.system.software.fusions.at("norm"));
  EXPECT_EQ(changed.system.software.fusions.at("rope"), plain.system.software.fusions.at("rope"));
  EXPECT_EQ(changed.system.software.issue_s, plain.system.software.issue_s);
}

TEST_F(WhereDoPartsComeFrom, not_one_that_is_like_itself) {
  const std::string path = testing::TempDir() + "like_itself.yaml";
  std::ofstream(path) << "like: " << path << "\n";
  EXPECT_THROW(read_text(job_with_model(path)), config::InputError);
  EXPECT_THROW(read_text(job_with_model("{like: nobody}")), config::InputError);
}

TEST_F(WhereDoPartsComeFrom, an_override_leads_into_what_is_only_named) {
  const Job job = load_job({"small",
                            {{"model.layers", "12"},
                             {"model.hidden", "512"},
                             {"cluster.nodes", "4"},
                             {"cluster.gpu.memory", "96 GiB"},
                             {"software.launch", "9 us"}},
                            {}});
  EXPECT_EQ(job.workload.model.name, "tiny (changed)");
  EXPECT_EQ(job.workload.model.layers, 12);
  EXPECT_EQ(job.workload.model.hidden, 512);
  EXPECT_EQ(job.system.cluster.max_gpus(), 32);
  EXPECT_EQ(job.system.cluster.gpu, "card (changed)");
  EXPECT_EQ(job.system.gpu.memory_bytes, 96 * 1024.0 * 1024 * 1024);
  EXPECT_EQ(job.system.software.name, "megatron-core (changed)");
  EXPECT_EQ(job.system.software.launch_s, 9e-6);
  EXPECT_EQ(load_job({"small", {{"batch.global", "64"}}, {}}).workload.model.name, "tiny");
}

TEST_F(WhereDoPartsComeFrom, an_override_of_like_names_another) {
  EXPECT_EQ(load_job({"small", {{"model.like", "experts"}, {"parallel.sp", "true"}}, {}}).workload.model.name, "experts");
  EXPECT_EQ(load_job({"small", {{"model.like", "experts"}, {"parallel.sp", "true"}, {"model.layers", "12"}}, {}}).workload.model.layers,
            12);
  EXPECT_THROW(static_cast<void>(load_job({"small", {{"software.like", "nobody"}}, {}})), config::InputError);
  EXPECT_THROW(static_cast<void>(load_job({"small", {{"cluster.gpu.like", "nobody"}}, {}})), config::InputError);
}

TEST_F(WhereDoPartsComeFrom, a_wrong_override_of_what_is_only_named) {
  const auto refusal = [](const std::string& key) {
    const std::string text = config::refusal_of([&] { return load_job({"small", {{key, "3"}}, {}}); });
    return text.substr(0, text.find('\n'));
  };
  EXPECT_EQ(refusal("model.layer"), "--set model.layer=3:1:7: error: unknown key 'layer'");
  EXPECT_EQ(refusal("cluster.gpu.memry"), "--set cluster.gpu.memry=3:1:13: error: unknown key 'memry'");
  EXPECT_EQ(refusal("modell.layers"), "--set modell.layers=3:1:1: error: unknown key 'modell'");
}

// The models that come with measured cases carry bookkeeping keys, and win over ready-made ones.
TEST_F(WhereDoPartsComeFrom, models_beside_measured_cases) {
  const config::Node models = config::Node::load_text(
      "tiny: {layers: 2, hidden: 64, heads: 4, ffn: 256, activation: gelu, vocab: 100, params_b: 0.1, cases: 3}\n"
      "special: {layers: 3, hidden: 64, heads: 4, ffn: 256, activation: gelu, vocab: 100}\n",
      "models.yaml");
  const auto read = [&](const std::string& model) {
    return read_job(config::Node::load_text(job_with_model(model), "cases.yaml"), "case", models);
  };
  EXPECT_EQ(read("tiny").workload.model.layers, 2);
  EXPECT_EQ(read("special").workload.model.layers, 3);
  EXPECT_EQ(config::refusal_of([&] { return read("specal"); }),
            "cases.yaml:1:8: error: unknown model 'specal'\n    1 | model: specal\n      |        ^\n"
            "  did you mean 'special'? known: experts, special, tiny, wide");
}

TEST_F(WhereDoPartsComeFrom, every_ready_made_model_is_read) {
  use_ready_made_files();
  const std::vector<std::string> names = config::data_names("workloads/models");
  EXPECT_GE(names.size(), 55U);
  for (const std::string& name : names) {
    const auto model = workloads::read_model(config::Node::load_file(config::data_file("workloads/models", name)), name);
    // Some models' heads are wider together than the hidden states.
    const bool widens = name.starts_with("gpt-oss") || name.starts_with("nemotron3-nano"), may_widen = widens || name.starts_with("qwen3");
    EXPECT_TRUE(may_widen || model.heads * model.head_dim == model.hidden) << name;
    EXPECT_TRUE(!widens || model.heads * model.head_dim > model.hidden) << name;
  }
}

}  // namespace
}  // namespace rehearse::sim
