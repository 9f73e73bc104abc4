#include "sim/analytic/walked_slots.hpp"

#include <algorithm>

namespace rehearse::sim {
namespace {

// In the order in which a slot works on them.
const UnitTerms* unit(ChunkTerms units, UnitExchange::Kind kind, std::size_t turn) {
  return units[kind == UnitExchange::Kind::forward ? turn : units.size() - 1 - turn];
}

struct TwoTurns {
  GatheredTurn first, second;
};
// That come next.
TwoTurns turns_ahead(SlotOrder::Works works, std::span<const ChunkTerms> chunks) {
  TwoTurns turns;
  for (; const SlotOrder::Work* work = works.next(); works.pass()) {
    const ChunkTerms units = chunks[work->chunk];
    for (std::size_t turn = 0; turn < units.size(); ++turn) {
      if (turns.first.unit != nullptr) {
        turns.second = {unit(units, work->kind, turn), work->kind};
        return turns;
      }
      turns.first = {unit(units, work->kind, turn), work->kind};
    }
  }
  return turns;
}

// Whether none of these slots adds to the chunk's gradients.
bool completes(SlotOrder::Works later, std::uint16_t chunk) {
  for (; const SlotOrder::Work* work = later.next(); later.pass()) {
    if (work->chunk == chunk && UnitExchange::makes_gradients(work->kind)) return false;
  }
  return true;
}

}  // namespace

bool KnownSlots::begin(std::span<const UnitTerms> units, std::span<const StageTerms> stages, const ReplicaRules& rules) {
  const UnitExchange exchange(rules);
  asked_.first = units.data();
  asked_.chunks = stages.front().chunks.size();
  asked_.reduces_last = exchange.reduces_last();
  const auto flag = [](bool value) { return value ? 1.0 : 0.0; };
  asked_times_ = {flag(rules.gathers_each()),
                  flag(rules.reduces_each()),
                  flag(rules.sync.overlap_parameters),
                  flag(rules.sync.overlap_gradients),
                  rules.pair.alpha,
                  rules.pair.beta,
                  rules.overhead_s};
  const auto add = [&](std::initializer_list<double> times) { asked_times_.insert(asked_times_.end(), times); };
  for (const UnitTerms& unit : units) {
    add({unit.gather_s, unit.gather_again_s, unit.reduce_s, unit.copy_s});
    for (const MetPass& pass : unit.passes) {
      const PassParts& parts = pass.parts;
      add({parts.compute_s, parts.calls_s, parts.before_s, parts.after_s, parts.joined_s, parts.ports.transfer_s, flag(pass.meets),
           pass.met.alpha, pass.met.beta});
    }
  }
  asked_.units.clear();
  for (const StageTerms& stage : stages) {
    for (const MessageMeets* met : {&stage.to_next, &stage.to_last}) add({met->alpha, met->beta});
    for (const ChunkTerms chunk : stage.chunks) {
      asked_.units.push_back(std::ssize(chunk));
      for (const UnitTerms* unit : chunk) asked_.units.push_back(unit - units.data());
    }
  }
  const std::size_t numbers = places().placed.size();
  ahead_ = exchange.gathers_ahead();
  const bool others = asked_ != places().of;
  if (!others && asked_times_ == times_) return false;
  forgotten_ += numbers;
  std::swap(times_, asked_times_);
  if (others) {
    std::swap(places().of, asked_);
    list(stages);
  }
  return true;
}

void KnownSlots::list(std::span<const StageTerms> stages) {
  places().alike.clear();
  std::vector<ChunkTerms> distinct;
  for (const StageTerms& stage : stages) {
    for (const ChunkTerms units : stage.chunks) {
      const auto same = std::ranges::find_if(distinct, [&](const ChunkTerms& one) { return std::ranges::equal(one, units); });
      places().alike.push_back(static_cast<std::uint32_t>(same - distinct.begin()));
      if (same == distinct.end()) distinct.push_back(units);
    }
  }
  places().placed.clear();
  places().order = nullptr;
  known_.resize(1UL << places_log2);
}

std::span<const KnownSlots::OfStage> KnownSlots::place(const SlotOrder& order, std::span<const StageTerms> stages,
                                                       const UnitExchange& exchange) {
  if (places().order == &order) return places().stages;
  places().order = &order;
  places().stages.resize(stages.size());
  for (std::size_t s = 0; s < stages.size(); ++s) place(order, s, stages[s], exchange, places().stages[s]);
  return places().stages;
}

// A round has two slots with units or none at all: no slot needs to know of more than the next round.
void KnownSlots::place(const SlotOrder& order, std::size_t stage, const StageTerms& terms, const UnitExchange& exchange, OfStage& numbers) {
  const auto list = [&](SlotOrder::Works works, bool follow, std::vector<std::uint32_t>& to) {
    to.clear();
    while (works.next() != nullptr && works.rounds_follow() == follow) {
      const SlotOrder::Work work = *works.next();
      PlacedSlot slot{.chunk = places().alike[stage * places().of.chunks + work.chunk], .kind = work.kind};
      works.pass();
      if (exchange.gathers_ahead()) {
        const TwoTurns ahead = turns_ahead(works, terms.chunks);
        slot.next = ahead.first;
        slot.next_but_one = ahead.second;
      }
      slot.reduces = exchange.reduces_last() && UnitExchange::makes_gradients(work.kind) && completes(works, work.chunk);
      to.push_back(number_of(slot));
    }
  };
  list(order.works(stage, 1), false, numbers.last);
  if (order.rounds() > 1) list(order.works(stage, 2), true, numbers.again);
  const TwoTurns ahead = exchange.gathers_ahead() ? turns_ahead(order.works(stage), terms.chunks) : TwoTurns{};
  numbers.first = ahead.first;
  numbers.second = ahead.second;
}

std::uint32_t KnownSlots::number_of(const PlacedSlot& slot) {
  std::vector<PlacedSlot>& placed = places().placed;
  const auto same = std::ranges::find(placed, slot);
  const auto number = static_cast<std::uint32_t>(same - placed.begin());
  if (same == placed.end()) placed.push_back(slot);
  return number;
}

WalkedStage::WalkedStage(const StageTerms& terms, const UnitExchange& exchange, const SlotOrder::Works& works,
                         const KnownSlots::OfStage& numbers, KnownSlots& known)
    : terms_(terms), works_(works), numbers_(numbers), known_(known), exchange_(exchange) {
  exchange_.begin(numbers.first, numbers.second);
}

double WalkedStage::slot(const SlotOrder::End& slot, double ready, double& first_s) {
  const ChunkTerms units = terms_.chunks[slot.chunk];
  const std::uint32_t number = numbers_.number(works_);
  works_.pass();
  if (units.empty()) {
    wait(ready);
    return first_s = now_s();
  }
  exchange_.ask(*unit(units, slot.kind, 0), slot.kind);
  wait(ready);
  from_s_ += exchange_.now();
  const UnitExchange::UnderWay before = exchange_.under_way();
  const WalkedSlot& walked = known_.find(number, before, [&] { return walk(known_.placed(number), units, before); });
  first_s = from_s_ + walked.begin_s;
  from_s_ += walked.end_s;
  exchanged_s_ += walked.exchanged_s;
  exchange_.restart(walked.under_way);
  return from_s_;
}

WalkedSlot WalkedStage::walk(const PlacedSlot& placed, ChunkTerms units, const UnitExchange::UnderWay& before) {
  exchange_.restart(before);
  WalkedSlot slot;
  for (std::size_t k = 0; k < units.size(); ++k) {
    const UnitTerms& now = *unit(units, placed.kind, k);
    if (k > 0) exchange_.ask(now, placed.kind);
    const double begin = exchange_.work(now, placed.kind);
    if (k == 0) slot.begin_s = begin;
    const bool within = k + 2 < units.size();
    const GatheredTurn ahead = within                  ? GatheredTurn{unit(units, placed.kind, k + 2), placed.kind}
                               : k + 2 == units.size() ? placed.next
                                                       : placed.next_but_one;
    exchange_.follow(now, placed.kind, placed.reduces, ahead);
  }
  slot.exchanged_s = exchange_.exchanged_s();
  slot.under_way = exchange_.under_way();
  slot.end_s = exchange_.now();
  return slot;
}

void WalkedStage::look(std::vector<double>& instants) const {
  const UnitExchange::UnderWay left = exchange_.under_way();
  const double now = now_s();
  for (const double instant : {now, now + left.all_s, now + left.reduced_s, now + left.here_s, now + left.next_s})
    instants.push_back(instant);
}

}  // namespace rehearse::sim
