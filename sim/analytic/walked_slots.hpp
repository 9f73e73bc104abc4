// Slots of units beside what replicas exchange: how long one takes follows from its units, the two after it and what is under way.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <vector>

#include "sim/analytic/slot_order.hpp"
#include "sim/analytic/unit_exchange.hpp"

namespace rehearse::sim {

// A slot of a stage, and what comes after it.
struct PlacedSlot {
  std::uint32_t chunk = 0;  // of those that differ
  UnitExchange::Kind kind = UnitExchange::Kind::forward;
  bool reduces = false;                 // once, behind its units
  GatheredTurn next{}, next_but_one{};  // after it, gathered ahead
  bool operator==(const PlacedSlot&) const = default;
};
// From when its input is there.
struct WalkedSlot {
  double begin_s = 0, end_s = 0, exchanged_s = 0;
  UnitExchange::UnderWay under_way;
};

// Those that were walked: a pipeline comes back to the same few. Each has one place to be kept in, until another needs it.
class KnownSlots {
 public:
  // Of stages whose units are among these. Whether they are others than before, of which all is forgotten then.
  bool begin(std::span<const UnitTerms> units, std::span<const StageTerms> stages, const ReplicaRules& rules);

  // The numbers of a stage's slots, one after another.
  struct OfStage {
    std::vector<std::uint32_t> last, again;  // as SlotOrder::Works::at(): without and with rounds that follow
    GatheredTurn first, second;              // gathered ahead, before all slots
    [[nodiscard]] std::uint32_t number(const SlotOrder::Works& works) const { return (works.rounds_follow() ? again : last)[works.at()]; }
  };
  // Of the stages that it began with. `order` must outlive this.
  [[nodiscard]] std::span<const OfStage> place(const SlotOrder& order, std::span<const StageTerms> stages, const UnitExchange& exchange);

  [[nodiscard]] const PlacedSlot& placed(std::uint32_t number) { return places().placed[number]; }
  // walk(): the slot, where it is not known.
  template <class Walk>
  const WalkedSlot& find(std::uint32_t number, const UnitExchange::UnderWay& before, Walk walk) {
    const std::uint64_t id = forgotten_ + number;
    Known& known = known_[place_of(id, before)];
    if (known.id != id || known.before != before) known = {id, before, walk()};
    return known.slot;
  }

 private:
  struct Known {
    std::uint64_t id = 0;
    UnitExchange::UnderWay before;
    WalkedSlot slot;
  };
  // What slots there are depends on.
  struct Of {
    const UnitTerms* first = nullptr;
    std::size_t chunks = 1;  // of a stage
    bool reduces_last = false;
    std::vector<std::ptrdiff_t> units;  // in their order, those of a chunk after how many they are
    bool operator==(const Of&) const = default;
  };
  struct Places {
    Of of;
    std::vector<std::uint32_t> alike;  // [stage, chunk] which of the distinct ones
    const SlotOrder* order = nullptr;
    std::vector<OfStage> stages;     // of that order
    std::vector<PlacedSlot> placed;  // [number]
  };
  static constexpr int places_log2 = 10;
  [[nodiscard]] static std::size_t place_of(std::uint64_t id, const UnitExchange::UnderWay& before) {
    const auto bits = [](double seconds) { return std::bit_cast<std::uint64_t>(seconds); };
    const std::uint64_t hash = bits(before.all_s) * 0x9e3779b97f4a7c15 + bits(before.here_s) * 0xbf58476d1ce4e5b9 + id * 0x94d049bb133111eb;
    return hash >> (64 - places_log2);
  }
  [[nodiscard]] Places& places() { return all_places_[ahead_ ? 1 : 0]; }
  void list(std::span<const StageTerms> stages);
  void place(const SlotOrder& order, std::size_t stage, const StageTerms& terms, const UnitExchange& exchange, OfStage& numbers);
  std::uint32_t number_of(const PlacedSlot& slot);

  std::array<Places, 2> all_places_;  // without and with parameters that are gathered ahead
  bool ahead_ = false;                // which of the two
  Of asked_;
  std::vector<double> times_, asked_times_;  // all else that slots depend on: of the rules, and of each unit and stage
  std::uint64_t forgotten_ = 1;              // numbers of stages before these
  std::vector<Known> known_;
};

// A stage without copies.
class WalkedStage {
 public:
  WalkedStage(const StageTerms& terms, const UnitExchange& exchange, const SlotOrder::Works& works, const KnownSlots::OfStage& numbers,
              KnownSlots& known);

  // The next slot, whose input is there at `ready`: when it ends. first_s: when it begins.
  double slot(const SlotOrder::End& slot, double ready, double& first_s);
  void wait(double until) { exchange_.pass_until(until - from_s_); }
  double message(double seconds, bool to_next) { return exchange_.message(seconds, to_next ? terms_.to_next : terms_.to_last); }
  void end() {
    exchange_.end();
    exchanged_s_ += exchange_.exchanged_s();
  }
  [[nodiscard]] double now_s() const { return from_s_ + exchange_.now(); }
  [[nodiscard]] static double copies_s() { return 0; }
  [[nodiscard]] double exchanged_s() const { return exchanged_s_; }

  // What its next slots depend on.
  void look(std::vector<double>& instants) const;
  // What it did between two instants so many times more, all of it in so many rounds and seconds. exchanged_s: at both.
  void skip(int times, int rounds, double seconds, double exchanged_before_s, double exchanged_s) {
    from_s_ += seconds;
    works_.skip_rounds(rounds);
    exchanged_s_ += times * (exchanged_s - exchanged_before_s);
  }

 private:
  [[nodiscard]] WalkedSlot walk(const PlacedSlot& placed, ChunkTerms units, const UnitExchange::UnderWay& before);

  const StageTerms& terms_;
  SlotOrder::Works works_;
  const KnownSlots::OfStage& numbers_;
  KnownSlots& known_;
  UnitExchange exchange_;
  double from_s_ = 0;  // from when it counts time
  double exchanged_s_ = 0;
};

}  // namespace rehearse::sim
