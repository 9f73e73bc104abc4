// A key is a field of a struct and one line: reading with checks, hints, defaults, writing and the description follow from it.
#include <gtest/gtest.h>

#include "config/keys.hpp"
#include "tests/config/refusal.hpp"

namespace rehearse::config {
namespace {

enum class Colour { red, green };
const Names<Colour> colours{{"red", Colour::red}, {"green", Colour::green}};

struct Wheel {
  int spokes = 32;
};

struct Bicycle {
  int gears = 1;
  Colour colour = Colour::green;
  bool bell = false;
  double weight_kg = 0;
  double top_speed = 0;
  std::vector<int> sprockets;
  std::optional<double> service_s;
  Wheel wheel;
};

const Keys<Wheel>& wheel_keys() {
  static const Keys<Wheel> keys{{"spokes", &Wheel::spokes, whole(3, 100), "Of each."}};
  return keys;
}

const Keys<Bicycle>& bicycle_keys() {
  using K = Key<Bicycle>;
  static const Keys<Bicycle> keys{
      K("gears", &Bicycle::gears, whole(1, 30), "Ratios."),
      K("colour", &Bicycle::colour, choice(colours), "Of the frame.").feature(),
      K("bell", &Bicycle::bell, truth(), "Rings.").feature(),
      K("weight", &Bicycle::weight_kg, number(1, 50), "In kg.").required(),
      K("top_speed", &Bicycle::top_speed, number(0, 100), "In km/h.")
          .otherwise("10 per gear", [](Bicycle& b) { b.top_speed = 10 * b.gears; }),
      K("sprockets", &Bicycle::sprockets, list_of(whole(9, 50)), "Teeth.").written_if([](const Bicycle& b) {
        return !b.sprockets.empty();
      }),
      K("service", &Bicycle::service_s, word_or_none("never", quantity(Dimension::time)), "Every so often."),
      K("wheel", &Bicycle::wheel, mapping(wheel_keys()), "Both."),
  };
  return keys;
}

Bicycle read(const std::string& text) {
  Bicycle bicycle;
  bicycle_keys().read(Node::load_text(text, "b.yaml"), bicycle);
  return bicycle;
}

TEST(WhatOneLineDeclares, how_a_value_is_read) {
  const Bicycle b = read("{gears: 7, colour: red, bell: true, weight: 12.5, sprockets: [11, 28], service: 30 days, wheel: {spokes: 36}}");
  EXPECT_EQ(b.gears, 7);
  EXPECT_EQ(b.colour, Colour::red);
  EXPECT_TRUE(b.bell);
  EXPECT_EQ(b.weight_kg, 12.5);
  EXPECT_EQ(b.sprockets, (std::vector<int>{11, 28}));
  EXPECT_EQ(b.service_s, 30 * 86400.0);
  EXPECT_EQ(b.wheel.spokes, 36);
}

TEST(WhatOneLineDeclares, what_holds_when_it_is_left_out) {
  const Bicycle b = read("{weight: 12, gears: 3}");
  EXPECT_EQ(b.colour, Colour::green);
  EXPECT_EQ(b.top_speed, 30);  // from another key
  EXPECT_EQ(b.service_s, std::nullopt);
  EXPECT_EQ(bicycle_keys().find("gears")->about().otherwise, "1");  // the field's initial value
  EXPECT_EQ(bicycle_keys().find("colour")->about().otherwise, "green");
  EXPECT_EQ(bicycle_keys().find("top_speed")->about().otherwise, "10 per gear");
  EXPECT_EQ(bicycle_keys().find("service")->about().otherwise, "never");
  EXPECT_EQ(bicycle_keys().find("weight")->about().otherwise, "");
}

TEST(WhatOneLineDeclares, what_is_refused) {
  const auto refusal = [](const std::string& text) { return refusal_of([&] { return read(text); }); };
  EXPECT_EQ(refusal("{weight: 12, gear: 3}"),
            "b.yaml:1:14: error: unknown key 'gear'\n    1 | {weight: 12, gear: 3}\n      |              ^\n  did you mean 'gears'? known: "
            "gears, colour, bell, weight, top_speed, sprockets, service, wheel");
  EXPECT_TRUE(refusal("{weight: 12, spokes: 36}").find("did you mean 'wheel.spokes'? known: gears") != std::string::npos);
  EXPECT_EQ(refusal("gears: 3\n"), "b.yaml:1:1: error: missing key 'weight'\n    1 | gears: 3\n      | ^");
  EXPECT_TRUE(refusal("{weight: 12, gears: 31}").find("gears must be between 1 and 30, not 31") != std::string::npos);
  EXPECT_TRUE(refusal("{weight: 12, colour: gren}").find("did you mean 'green'? known: red, green") != std::string::npos);
  EXPECT_TRUE(refusal("{weight: 12, service: 5}").find("a unit is missing") != std::string::npos);
  EXPECT_TRUE(refusal("{weight: 12, wheel: {spokes: 2}}").find("wheel.spokes must be between 3 and 100, not 2") != std::string::npos);
}

TEST(WhatOneLineDeclares, how_it_is_written) {
  Bicycle b = read("{weight: 12, gears: 3, service: 60 s}");
  EXPECT_EQ(bicycle_keys().write(b).to_yaml(),
            "gears: 3\ncolour: green\nbell: false\nweight: 12\ntop_speed: 30\nservice: 60 s\nwheel:\n  spokes: 32\n");
  b.sprockets = {11};
  EXPECT_EQ(bicycle_keys().write(b).find_path("sprockets")->items().size(), 1U);
  EXPECT_EQ(bicycle_keys().write(read(bicycle_keys().write(b).to_yaml())).to_yaml(), bicycle_keys().write(b).to_yaml());
}

TEST(WhatOneLineDeclares, what_it_looks_like) {
  const Shape shape = bicycle_keys().shape();
  std::vector<std::string> rows;
  for (const Place& place : all_places(shape)) rows.push_back(place.path + ": " + describe(place.parameter->shape));
  EXPECT_EQ(rows,
            (std::vector<std::string>{"gears: whole number, 1 to 30", "colour: red | green", "bell: true | false",
                                      "weight: number, 1 to 50", "top_speed: number, 0 to 100", "sprockets: list of: whole number, 9 to 50",
                                      "service: never | time (5 us or 5 ms)", "wheel: {spokes}", "wheel.spokes: whole number, 3 to 100"}));
  EXPECT_EQ(words_of(bicycle_keys().find("bell")->about().shape), (std::vector<std::string>{"false", "true"}));
}

TEST(WhatOneLineDeclares, one_key_by_its_path) {
  Bicycle b = read("weight: 12\n");
  bicycle_keys().read_at("colour", Node::load_text("red", "--set"), b);
  EXPECT_EQ(b.colour, Colour::red);
  EXPECT_THROW(bicycle_keys().read_at("color", Node::load_text("red", "--set"), b), InputError);
}

}  // namespace
}  // namespace rehearse::config
