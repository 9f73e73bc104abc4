// What DeepSpeed's configurations say: batch and buffers, and what lies on the host (offload_optimizer and offload_param).
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "sim/job/job.hpp"
#include "tests/import/import_file.hpp"

namespace rehearse::sim::testing {
namespace {

ImportedFile with_zero(const std::string& settings) {
  const std::filesystem::path path = std::filesystem::temp_directory_path() / ("zero-" + std::to_string(::getpid()));
  std::ofstream(path)
      << R"({"train_batch_size": 32, "train_micro_batch_size_per_gpu": 1, "bf16": {"enabled": true}, "zero_optimization": {)" << settings
      << "}}";
  const Settings rest{{"cluster", "dgx-a100-80g-hdr200"}, {"gpus", "8"}, {"model", "llama2-7b"}, {"batch.sequence", "4096"}};
  ImportedFile file = import_file("deepspeed", path.string(), rest);
  std::filesystem::remove(path);
  (void)read_job(file.finished.document, "zero");  // a job that runs
  return file;
}

TEST(DeepSpeed, SaysBatchPrecisionAndZeroAlone) {
  const Settings rest{{"cluster", "jean-zay-a100-80g"},
                      {"gpus", "384"},
                      {"model", "bloom-176b"},
                      {"batch.sequence", "2048"},
                      {"parallel", "{tp: 4, pp: 12}"}};
  const ImportedFile file = import_published("deepspeed", "bloom-deepspeed.json", rest);
  expect(file, {{"batch.global", "2048"},
                {"batch.micro", "2"},
                {"precision", "bf16"},
                {"optimizer.sharding", "zero1"},
                {"software", "deepspeed-3d"},
                {"overlap.dp_gradients", "false"}});
  EXPECT_TRUE(says(file.draft.inferred, "DeepSpeed's optimizer for bf16"));
}

// FlagPerf's LLaMA 2 7B: one bucket of 1e7 gradients, 2 bytes each.
TEST(DeepSpeed, SaysWhatItsBuffersAre) {
  const Settings rest{
      {"cluster", "dgx-a100-80g-hdr200"}, {"gpus", "8"}, {"model", "llama2-7b"}, {"batch.sequence", "4096"}, {"batch.global", "8"}};
  const ImportedFile file = import_published("deepspeed", "llama2-7b-flagperf.json", rest);
  expect(file, {{"batch.micro", "1"},
                {"precision", "fp16"},
                {"optimizer.sharding", "zero3"},
                {"software.like", "deepspeed"},
                {"software.memory.zero3_buckets", "20000000 B"},
                {"software.memory.live_parameters", "1000000000"},
                {"software.memory.update_at_once", "1000000000"},
                {"overlap.dp_gradients", "true"},
                {"overlap.dp_parameters", "true"}});
  EXPECT_TRUE(says(file.draft.inferred, "--set software=deepspeed-3d"));
}

// Its engines without ZeRO, of which keys of PyTorch 2's time say that they are on it.
TEST(DeepSpeed, KeysSayOnWhichPyTorchItsEnginesAre) {
  const std::filesystem::path path = std::filesystem::temp_directory_path() / ("pipeline-" + std::to_string(::getpid()));
  const auto software = [&](const std::string& more) {
    std::ofstream(path) << R"({"train_batch_size": 8, "train_micro_batch_size_per_gpu": 1, "fp16": {"enabled": true})" << more << "}";
    const Settings rest{{"cluster", "dgx-a100-80g-hdr200"}, {"gpus", "8"}, {"model", "llama2-7b"}, {"batch.sequence", "4096"}};
    return value_of(import_file("deepspeed", path.string(), rest), "software");
  };
  EXPECT_EQ(software(""), "deepspeed-3d");
  EXPECT_EQ(software(R"(, "pipeline": {"stages": 4})"), "deepspeed-3d");
  EXPECT_EQ(software(R"(, "pipeline": {"use_reentrant": false})"), "deepspeed-3d-2025");
  EXPECT_EQ(software(R"(, "compile": {"enabled": true})"), "deepspeed-3d-2025");
  std::filesystem::remove(path);
}

TEST(WhatDeepSpeedKeepsOnTheHost, OptimizerAndWeights) {
  expect(with_zero(R"("stage": 3, "offload_optimizer": {"device": "cpu"}, "offload_param": {"device": "cpu"})"),
         {{"optimizer.sharding", "zero3"}, {"optimizer.device", "cpu"}, {"offload.weights", "true"}});
  expect(with_zero(R"("stage": 3, "offload_optimizer": {"device": "cpu"}, "offload_param": {"device": "none"})"),
         {{"optimizer.device", "cpu"}, {"offload.weights", ""}});
  // Below ZeRO-3 no rank has shards of weights that could lie there.
  expect(with_zero(R"("stage": 2, "offload_optimizer": {"device": "cpu"}, "offload_param": {"device": "cpu"})"),
         {{"optimizer.sharding", "zero2"}, {"offload.weights", ""}});
}

}  // namespace
}  // namespace rehearse::sim::testing
