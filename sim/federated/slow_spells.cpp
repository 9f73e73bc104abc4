#include "sim/federated/slow_spells.hpp"

#include <algorithm>
#include <set>

namespace rehearse::federated {
namespace {

bool same_thing(const SlowSpell& a, const SlowSpell& b) {
  return a.what == b.what && (a.what != SlowSpell::What::device || a.device == b.device);
}

double factor_at(const std::vector<SlowSpell>& spells, const SlowSpell& same, double time_s) {
  double factor = 1;
  for (const SlowSpell& spell : spells) {
    if (same_thing(spell, same) && spell.from_s <= time_s && time_s < spell.from_s + spell.for_s) factor *= spell.factor;
  }
  return factor;
}

}  // namespace

SlowSpells::SlowSpells(const std::vector<SlowSpell>& spells, const std::vector<std::size_t>& devices)
    : speeds_(devices.size(), std::vector<double>{1.0}) {
  for (std::size_t i = 0; i < spells.size(); ++i) {
    const bool first = std::none_of(spells.begin(), spells.begin() + static_cast<std::ptrdiff_t>(i),
                                    [&](const SlowSpell& before) { return same_thing(before, spells[i]); });
    if (!first) continue;
    const auto of = std::ranges::find(devices, spells[i].device);
    if (spells[i].what == SlowSpell::What::device && of == devices.end()) continue;
    add(spells, spells[i], static_cast<std::size_t>(of - devices.begin()));
  }
}

void SlowSpells::add(const std::vector<SlowSpell>& spells, const SlowSpell& same, std::size_t of_class) {
  std::set<double> instants;
  for (const SlowSpell& spell : spells) {
    if (!same_thing(spell, same)) continue;
    instants.insert(spell.from_s);
    if (spell.for_s < never) instants.insert(spell.from_s + spell.for_s);
  }
  for (const double at_s : instants) {
    const double factor = factor_at(spells, same, at_s);
    SpeedChange change{.at_s = at_s, .what = same.what, .of_class = of_class, .factor = factor};
    if (same.what == SlowSpell::What::device) {
      change.speed = speeds_[of_class].size();
      speeds_[of_class].push_back(1 / factor);
    }
    changes_.push_back(change);
  }
}

}  // namespace rehearse::federated
