#include <gtest/gtest.h>

#include <cmath>

#include "config/node.hpp"
#include "places.hpp"
#include "workloads/model.hpp"

namespace rehearse::workloads {
namespace {

// Half a unit of the fourth significant digit.
double half_digit(double printed) { return 0.5 * std::pow(10, std::floor(std::log10(printed)) - 3) * (1 + 1e-9); }

std::vector<config::Node> published_rows() {
  return config::Node::load_file(std::string(REHEARSE_SOURCE_DIR) + "/tests/workloads/published/parameters.yaml").items();
}

TEST(Parameters, MatchEveryPublishedArchitectureToItsDigits) {
  for (const config::Node& row : published_rows()) {
    const std::string name = row.at("name").as_string();
    const double printed = row.at("params_b").as_number(0, 1e5);
    const ParameterCount count = count_parameters(read_model(row.at("model"), name));
    EXPECT_NEAR(count.total / 1e9, printed, half_digit(printed)) << name;
    if (const auto active = row.find("params_active_b")) {
      const double expected = active->as_number(0, 1e5);
      EXPECT_NEAR(count.active / 1e9, expected, half_digit(expected)) << name;
    } else {
      EXPECT_EQ(count.active, count.total) << name;
    }
  }
}

TEST(Parameters, OfAGptAre12LH2Plus13LH) {
  // Narayanan et al. 2021, equation 2: 12 l h^2 (1 + 13/(12h) + (V + s)/(12 l h)), with the final norm's 2h beside it.
  Model model;
  model.layers = 24;
  model.hidden = 2304;
  model.heads = model.kv_heads = 24;
  model.head_dim = 96;
  model.ffn = 9216;
  model.vocab = 51200;
  model.tied_embeddings = true;
  model.positions = Positions::learned;
  model.biases = true;
  model.norm = Norm::layernorm;
  const double l = 24, h = 2304, v = 51200, s = 2048;
  const ParameterCount count = count_parameters(model, 2048);
  EXPECT_NEAR(count.total, 12 * l * h * h * (1 + 13 / (12 * h) + (v + s) / (12 * l * h)) + 2 * h, 1e-3);
  EXPECT_EQ(count.layer, 12 * h * h + 13 * h);
  EXPECT_EQ(count.head, 0);
}

TEST(Parameters, PartsAddUp) {
  for (const config::Node& row : published_rows()) {
    const Model model = read_model(row.at("model"), "m");
    const ParameterCount count = count_parameters(model);
    if (model.moe) continue;
    EXPECT_DOUBLE_EQ(count.layer * model.layers + count.embedding + count.final_norm + count.head, count.total);
  }
}

TEST(Parameters, ExpertsEveryOtherLayerFollowTheLeadingDenseOnes) {
  Model model;
  model.layers = 8;
  model.hidden = 64;
  model.heads = model.kv_heads = 4;
  model.head_dim = 16;
  model.ffn = 256;
  model.activation = Activation::swiglu;
  model.moe = MoeSpec{4, 2, 0, 128, 1, 2};  // layers 1, 3, 5, 7
  const ParameterCount count = count_parameters(model);
  EXPECT_DOUBLE_EQ(count.total, 4 * count.dense_layer + 4 * count.moe_layer);
  // Router 64 x 4; experts 3 x 64 x 128 each, in place of 3 x 64 x 256.
  EXPECT_DOUBLE_EQ(count.moe_layer - count.dense_layer, 64 * 4 + 4 * 3 * 64 * 128 - 3 * 64 * 256);
}

TEST(Parameters, ModelFlopsAreSixPerActiveMatrixParameterAndToken) {
  // DeepSeek-V3: attention aside, 6 x (37.55e9 active parameters less the embedding table) within the share of norms (< 0.01 %).
  const config::Node file = config::Node::load_file(std::string(REHEARSE_SOURCE_DIR) + "/tests/workloads/published/parameters.yaml");
  for (const config::Node& row : file.items()) {
    Model model = read_model(row.at("model"), row.at("name").as_string());
    model.mtp = 0;  // no parameters of the model proper
    const ParameterCount count = count_parameters(model);
    const double full = model_flops_per_sequence(model, 4096, false), half = model_flops_per_sequence(model, 4096, true);
    const double linear = (full - 2 * (full - half)) / 4096 / 6;  // without attention
    // Tied embeddings are read once as a table and multiplied once as the head.
    const double table = model.tied_embeddings ? count.embedding - static_cast<double>(model.vocab) * model.hidden : count.embedding;
    EXPECT_NEAR(linear / (count.active - table), 1, 1e-3) << row.at("name").as_string();
  }
}

}  // namespace
}  // namespace rehearse::workloads
