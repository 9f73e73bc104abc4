#include <fmt/format.h>

#include <set>

#include "config/keys.hpp"
#include "sim/federated/chain.hpp"

namespace rehearse::federated {
namespace {

using config::Form;
using config::Key;
using config::Keys;
using config::Node;
using config::Shape;
using config::truth;
using config::whole;

constexpr std::int64_t widest = 100'000'000;  // channels, elements of a vector
constexpr double most_elements = 1e15;

// A convolution, square and with as many rows as columns, and perhaps the batch norm behind it.
struct Convolution {
  int in = 0, out = 0, kernel = 0, size = 0;  // size: rows of the output
  bool bias = false, norm = false;
  [[nodiscard]] double weights() const { return static_cast<double>(kernel) * kernel * in * out; }
  [[nodiscard]] double flops() const { return 2 * weights() * size * size; }
  [[nodiscard]] double parameters() const { return weights() + (bias ? out : 0) + (norm ? 2.0 * out : 0); }
  [[nodiscard]] double outputs() const { return static_cast<double>(out) * size * size; }
};

struct Linear {
  int in = 0, out = 0;
  bool bias = true;
  [[nodiscard]] double flops() const { return 2.0 * in * out; }
  [[nodiscard]] double parameters() const { return static_cast<double>(in) * out + (bias ? out : 0); }
  [[nodiscard]] double outputs() const { return out; }
};

const Keys<Convolution>& convolution_keys() {
  using K = Key<Convolution>;
  static const Keys<Convolution> keys{
      K("in", &Convolution::in, whole(1, widest), "Channels read.").required(),
      K("out", &Convolution::out, whole(1, widest), "Channels written.").required(),
      K("kernel", &Convolution::kernel, whole(1, 1000), "Rows of the kernel.").required(),
      K("size", &Convolution::size, whole(1, 1'000'000), "Rows of the output, as many as columns.").required(),
      K("bias", &Convolution::bias, truth(), "Has a bias per channel."),
      K("norm", &Convolution::norm, truth(), "Batch norm behind it: two parameters per channel."),
  };
  return keys;
}

const Keys<Linear>& linear_keys() {
  using K = Key<Linear>;
  static const Keys<Linear> keys{
      K("in", &Linear::in, whole(1, widest), "Elements read.").required(),
      K("out", &Linear::out, whole(1, widest), "Elements written.").required(),
      K("bias", &Linear::bias, truth(), "Has a bias."),
  };
  return keys;
}

// One, or a list of several.
template <class Item>
Form<std::vector<Item>> one_or_more(const Form<Item>& item) {
  const Form<std::vector<Item>> list = config::list_of(item);
  return {config::either({item.shape, list.shape}),
          [=](const Node& node) { return node.is_sequence() ? list.read(node) : std::vector<Item>{item.read(node)}; },
          [=](const std::vector<Item>& items) { return items.size() == 1 ? item.write(items.front()) : list.write(items); }};
}

struct UnitText {
  std::string name;
  std::vector<Convolution> convolutions;
  std::vector<Linear> linears;
  std::optional<double> flops, parameters, outputs, kept, leakage;
  int repeat = 1;
};

const Keys<UnitText>& unit_keys() {
  using K = Key<UnitText>;
  static const Keys<UnitText> keys{
      K("name", &UnitText::name, config::text(), "By which a cut behind this unit is called.").required(),
      K("conv", &UnitText::convolutions, one_or_more(mapping(convolution_keys())), "Convolutions of the unit, one or a list.")
          .written_if([](const UnitText& unit) { return !unit.convolutions.empty(); })
          .otherwise(""),
      K("linear", &UnitText::linears, one_or_more(mapping(linear_keys())), "Linear layers of the unit, one or a list.")
          .written_if([](const UnitText& unit) { return !unit.linears.empty(); })
          .otherwise(""),
      K("flops", &UnitText::flops, config::number(0, 1e18), "Forward FLOPs per sample; a multiply-add is 2.")
          .otherwise("those of conv and linear"),
      K("params", &UnitText::parameters, config::number(0, 1e15), "Parameters.").otherwise("those of conv and linear"),
      K("out", &UnitText::outputs, config::number(1, most_elements), "Elements that cross a cut behind this unit, per sample.")
          .otherwise("those of the last layer"),
      K("kept", &UnitText::kept, config::number(0, most_elements), "Elements kept for backward, per sample.").otherwise("out"),
      K("leakage", &UnitText::leakage, config::number(0, 1), "Measured leakage of a cut behind this unit, for `leakage.measure: table`.")
          .otherwise(""),
      K("repeat", &UnitText::repeat, whole(1, 10'000), "So many of these units, called name1, name2, ..."),
  };
  return keys;
}

Unit unit_of(const Node& node, const UnitText& text) {
  Unit unit{.name = text.name, .leakage = text.leakage};
  const auto add = [&](const auto& layers) {
    for (const auto& layer : layers) {
      unit.forward_flops += layer.flops();
      unit.parameters += layer.parameters();
      unit.output_elements = layer.outputs();
    }
  };
  add(text.convolutions);
  add(text.linears);
  const bool has_layers = !text.convolutions.empty() || !text.linears.empty();
  if (!has_layers && !text.flops) node.fail(fmt::format("unit '{}' has neither conv nor linear nor flops", text.name));
  if (!has_layers && !text.outputs)
    node.fail(fmt::format("unit '{}' does not say how many elements leave it", text.name), "add out: 65536");
  unit.forward_flops = text.flops.value_or(unit.forward_flops);
  unit.parameters = text.parameters.value_or(unit.parameters);
  unit.output_elements = text.outputs.value_or(unit.output_elements);
  unit.kept_elements = text.kept.value_or(unit.output_elements);
  return unit;
}

void read_units(const Node& list, Chain& chain) {
  std::set<std::string> names{no_cut};
  for (const Node& node : list.items()) {
    UnitText text;
    unit_keys().read(node, text);
    Unit unit = unit_of(node, text);
    for (int i = 1; i <= text.repeat; ++i) {
      if (text.repeat > 1) unit.name = fmt::format("{}{}", text.name, i);
      if (!names.insert(unit.name).second) {
        node.at("name").fail(
            fmt::format("'{}' is taken: the name of a unit names the cut behind it, and none is the whole model", unit.name));
      }
      chain.units.push_back(unit);
    }
  }
  if (chain.units.size() < 2) list.fail("a chain of one unit cannot be cut", "list at least two units");
  double parameters = 0;
  for (const Unit& unit : chain.units) parameters += unit.parameters;
  if (parameters <= 0) list.fail("the units have no parameters: there is nothing to train");
}

const Keys<Chain>& chain_keys() {
  using K = Key<Chain>;
  static const Keys<Chain> keys{
      K(
          "kind", {.kind = Shape::Kind::choice, .choices = {"chain"}},
          [](const Node& node, Chain&) { static_cast<void>(node.as_choice({"chain"})); },
          [](const Chain&) { return Node::scalar("chain", true); }, "Tells a chain from a transformer.")
          .required(),
      K("input", &Chain::input_elements, config::number(0, most_elements), "Elements of a sample, which stay in the device's memory."),
      K("element", &Chain::element_bytes, choice(element_types()), "How parameters and activations are held and sent."),
      K("tied", &Chain::tied, truth(), "The last unit shares the first one's matrix, so that the model cannot be cut."),
      K("units", {.kind = Shape::Kind::list, .parts = {unit_keys().shape()}}, read_units, {}, "In order; the last one is never cut off.")
          .required(),
  };
  return keys;
}

}  // namespace

const config::Names<double>& element_types() {
  static const config::Names<double> types{{"fp32", 4}, {"bf16", 2}, {"fp16", 2}, {"fp64", 8}};
  return types;
}

Chain read_chain(const Node& node, const std::string& name) {
  Chain chain;
  chain.name = name;
  chain_keys().read(node, chain);
  return chain;
}

Shape chain_shape() { return chain_keys().shape(); }

}  // namespace rehearse::federated
