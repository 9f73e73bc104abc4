#include "sim/federated/radio.hpp"

#include <cmath>

namespace rehearse::federated {
namespace {

using config::Dimension;
using config::Form;
using config::Key;
using config::Keys;
using config::Names;
using config::Node;
using config::Shape;

constexpr double bits_of_a_byte = 8;
constexpr double quietest_dbm = -300;

const Names<Duplex>& duplexes() {
  static const Names<Duplex> names{{"fdd", Duplex::fdd}, {"tdd", Duplex::tdd}};
  return names;
}
const Names<Power>& powers() {
  static const Names<Power> names{{"per-hertz", Power::per_hertz}, {"total", Power::total}};
  return names;
}
const Names<Fading>& fadings() {
  static const Names<Fading> names{{"none", Fading::none}, {"rayleigh", Fading::rayleigh}};
  return names;
}

Form<PathLoss> path_loss_form() {
  const Form<double> decibels = config::number(0, 1000);
  return {{.kind = Shape::Kind::list, .parts = {decibels.shape}},
          [decibels](const Node& node) {
            const std::vector<Node> items = node.items();
            if (items.size() != 2) node.fail("path_loss takes two numbers: dB at 1 km, dB per decade of distance", "[128.1, 37.6]");
            return PathLoss{decibels.read(items[0]), decibels.read(items[1])};
          },
          [decibels](const PathLoss& loss) {
            return Node::list({decibels.write(loss.at_1_km_db), decibels.write(loss.per_decade_db)});
          }};
}

Form<double> band_form() {
  return config::quantity(Dimension::frequency).checked([](const Node& node, double hertz) {
    if (hertz < 1) node.fail("a band of less than 1 Hz carries nothing");
  });
}

}  // namespace

const Names<Sharing>& sharings() {
  static const Names<Sharing> names{{"reserved", Sharing::reserved}, {"weighted", Sharing::weighted}, {"fifo", Sharing::fifo}};
  return names;
}

const Keys<Radio>& radio_keys() {
  using K = Key<Radio>;
  static const Keys<Radio> keys{
      K("band", &Radio::band_hz, band_form(), "Band of the uplink; with tdd of both directions."),
      K("downlink_band", &Radio::downlink_band_hz, band_form(), "Band of the downlink.")
          .otherwise("band")
          .written_if([](const Radio& radio) { return radio.downlink_band_hz > 0; }),
      K("duplex", &Radio::duplex, choice(duplexes()), "fdd: a band for each direction; tdd: one band for both.").feature(),
      K("sharing", &Radio::sharing, choice(sharings()),
        "reserved: a share is a device's own and idle while it computes; weighted: it is a weight among those present; fifo: one at a "
        "time.")
          .feature(),
      K("power", &Radio::power, choice(powers()),
        "What a device keeps when it gets a part of the band: its power per Hertz, or its total power."),
      K("transmit", &Radio::transmit_dbm, config::quantity(Dimension::level, quietest_dbm), "Power of a device over the whole band."),
      K("base", &Radio::base_dbm, config::quantity(Dimension::level, quietest_dbm), "Power of the base station over the whole band."),
      K("noise", &Radio::noise_dbm_per_hz, config::quantity(Dimension::level_density, quietest_dbm), "Noise."),
      K("path_loss", &Radio::path_loss, path_loss_form(), "Loss in dB at 1 km, and per decade of distance."),
      K("fading", &Radio::fading, choice(fadings()), "rayleigh: the gain of every device and direction is drawn anew for each round."),
      K("rates", &Radio::rates, rate_rows_form(),
        "Rates over time: [[time_s, device, uplink_bytes_per_s, downlink_bytes_per_s]], or a CSV file.")
          .otherwise("the devices' own")
          .written_if([](const Radio& radio) { return !radio.rates.empty(); }),
  };
  return keys;
}

double signal_hz(const Radio& radio, double power_dbm, double distance_m) {
  constexpr double metres_per_km = 1000;
  const double loss_db = radio.path_loss.at_1_km_db + radio.path_loss.per_decade_db * std::log10(distance_m / metres_per_km);
  return std::pow(10, (power_dbm - loss_db - radio.noise_dbm_per_hz) / 10);
}

double rate_bytes_per_s(double band_hz, double signal_hz) { return band_hz * std::log2(1 + signal_hz / band_hz) / bits_of_a_byte; }

}  // namespace rehearse::federated
