// Slots of units beside what replicas exchange: how long one takes follows from its units, the two after it and what is under way.
#pragma once

#include <array>
#include <vector>

#include "sim/analytic/slot_order.hpp"
#include "sim/analytic/unit_exchange.hpp"

namespace rehearse::sim {

struct BeforeSlot {
  UnitExchange::UnderWay under_way;
  const UnitTerms *next = nullptr, *next_but_one = nullptr;  // of the turns after it, gathered ahead
  bool reduces = false;                                      // once, behind its units
  bool operator==(const BeforeSlot&) const = default;
};
// From when its input is there.
struct WalkedSlot {
  double begin_s = 0, end_s = 0, exchanged_s = 0;
  UnitExchange::UnderWay under_way;
};

// Those that were walked last, of each kind of chunk: a pipeline comes back to the same few.
class KnownSlots {
 public:
  // Of stages whose units are among these. Whether they are others than before, of which all is forgotten then.
  bool begin(std::span<const UnitTerms> units, std::span<const StageTerms> stages, const ReplicaRules& rules);
  [[nodiscard]] std::size_t kind_of(std::size_t stage, std::size_t chunk, UnitExchange::Kind kind) const {
    return 4UL * alike_[stage * of_.chunks + chunk] + static_cast<std::size_t>(kind);
  }
  [[nodiscard]] const WalkedSlot* find(std::size_t kind, const BeforeSlot& before) const {
    const Last& last = last_[kind];
    for (std::size_t i = 0; i < last.count; ++i) {
      const std::size_t at = (last.newest + last.slots.size() - i) % last.slots.size();
      if (last.slots[at].first == before) return &last.slots[at].second;
    }
    return nullptr;
  }
  const WalkedSlot& keep(std::size_t kind, const BeforeSlot& before, const WalkedSlot& slot);

 private:
  struct Last {
    std::array<std::pair<BeforeSlot, WalkedSlot>, 8> slots;
    std::size_t count = 0, newest = 0;
  };
  // All that slots depend on.
  struct Of {
    const UnitTerms* first = nullptr;
    std::size_t chunks = 1;             // of a stage
    std::vector<double> numbers;        // of the rules, and of each unit and stage
    std::vector<std::ptrdiff_t> order;  // of the units, those of a chunk after how many they are
    bool operator==(const Of&) const = default;
  };
  void list(std::span<const StageTerms> stages);

  Of of_, asked_;
  std::vector<std::size_t> alike_;  // [stage, chunk] which of the distinct ones
  std::vector<ChunkTerms> distinct_;
  std::vector<Last> last_;  // [distinct chunk, kind]
};

// A stage without copies.
class WalkedStage {
 public:
  WalkedStage(const StageTerms& terms, const ReplicaRules& rules, const SlotOrder& order, std::size_t stage, KnownSlots& known);

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
  [[nodiscard]] const UnitTerms* unit(const SlotOrder::Work& work, std::size_t turn) const {
    const ChunkTerms units = terms_.chunks[work.chunk];
    return units[work.kind == UnitExchange::Kind::forward ? turn : units.size() - 1 - turn];
  }
  struct Turns {
    const UnitTerms *first = nullptr, *second = nullptr;
  };
  // That come next, where their parameters are gathered ahead.
  [[nodiscard]] Turns turns_ahead() const;
  // Whether no slot behind this one adds to its chunk's gradients.
  [[nodiscard]] bool completes(const SlotOrder::Work& work) const;
  [[nodiscard]] WalkedSlot walk(const SlotOrder::Work& work, const BeforeSlot& before);

  const StageTerms& terms_;
  SlotOrder::Works works_;
  std::size_t stage_;
  KnownSlots& known_;
  UnitExchange exchange_;
  double from_s_ = 0;  // from when it counts time
  double exchanged_s_ = 0;
};

}  // namespace rehearse::sim
