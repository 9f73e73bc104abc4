// ZeRO's offload_optimizer and offload_param of a DeepSpeed configuration.
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
