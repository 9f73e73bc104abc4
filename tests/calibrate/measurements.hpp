// Measurements made by the program itself, of hardware that is known.
#pragma once

#include <filesystem>
#include <string>

#include "tests/cli/program.hpp"

namespace rehearse::calibrate::testing {

void write(const std::filesystem::path& file, const std::string& text);

// A small dense model on one node, cut so that operators differ much in size.
inline const std::string small_job =
    "model: {name: small, layers: 4, hidden: 2048, heads: 16, ffn: 8192, vocab: 32000, activation: gelu}\n"
    "cluster: dgx-h100-ndr400\n"
    "gpus: 1\n"
    "batch: {global: 4, micro: 1, sequence: 2048}\n"
    "simulation: {granularity: operator}\n";

// The number behind a dotted path of a YAML file.
[[nodiscard]] double number_in(const std::filesystem::path& file, const std::string& path);

}  // namespace rehearse::calibrate::testing
