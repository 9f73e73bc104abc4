#include "sim/analytic/walked_slots.hpp"

#include <algorithm>

namespace rehearse::sim {

bool KnownSlots::begin(std::span<const UnitTerms> units, std::span<const StageTerms> stages, const ReplicaRules& rules) {
  asked_.first = units.data();
  asked_.chunks = stages.front().chunks.size();
  const auto flag = [](bool value) { return value ? 1.0 : 0.0; };
  asked_.numbers = {flag(rules.gathers_each()),
                    flag(rules.sync.overlap_parameters),
                    flag(rules.reduces_each()),
                    flag(rules.sync.overlap_gradients),
                    rules.pair.alpha,
                    rules.pair.beta,
                    rules.overhead_s};
  for (const UnitTerms& unit : units) {
    asked_.numbers.insert(asked_.numbers.end(), {unit.gather_s, unit.reduce_s, unit.copy_s});
    for (const MetPass& pass : unit.passes) {
      const PassParts& parts = pass.parts;
      asked_.numbers.insert(asked_.numbers.end(), {parts.compute_s, parts.calls_s, parts.before_s, parts.after_s, parts.ports.transfer_s,
                                                   flag(pass.meets), pass.met.alpha, pass.met.beta});
    }
  }
  asked_.order.clear();
  for (const StageTerms& stage : stages) {
    for (const MessageMeets* met : {&stage.to_next, &stage.to_last}) asked_.numbers.insert(asked_.numbers.end(), {met->alpha, met->beta});
    for (const ChunkTerms chunk : stage.chunks) {
      asked_.order.push_back(std::ssize(chunk));
      for (const UnitTerms* unit : chunk) asked_.order.push_back(unit - units.data());
    }
  }
  if (asked_ == of_) return false;
  std::swap(of_, asked_);
  list(stages);
  return true;
}

void KnownSlots::list(std::span<const StageTerms> stages) {
  alike_.clear();
  distinct_.clear();
  for (const StageTerms& stage : stages) {
    for (const ChunkTerms units : stage.chunks) {
      const auto same = std::ranges::find_if(distinct_, [&](const ChunkTerms& one) { return std::ranges::equal(one, units); });
      alike_.push_back(static_cast<std::size_t>(same - distinct_.begin()));
      if (same == distinct_.end()) distinct_.push_back(units);
    }
  }
  if (last_.size() < 4 * distinct_.size()) last_.resize(4 * distinct_.size());
  for (std::size_t kind = 0; kind < 4 * distinct_.size(); ++kind) last_[kind].count = last_[kind].newest = 0;
}

const WalkedSlot& KnownSlots::keep(std::size_t kind, const BeforeSlot& before, const WalkedSlot& slot) {
  Last& last = last_[kind];
  last.newest = (last.newest + 1) % last.slots.size();
  last.count = std::min(last.count + 1, last.slots.size());
  last.slots[last.newest] = {before, slot};
  return last.slots[last.newest].second;
}

WalkedStage::WalkedStage(const StageTerms& terms, const ReplicaRules& rules, const SlotOrder& order, std::size_t stage, KnownSlots& known)
    : terms_(terms), works_(order.works(stage)), stage_(stage), known_(known), exchange_(rules) {
  const auto [first, second] = turns_ahead();
  exchange_.begin(first, second);
}

WalkedStage::Turns WalkedStage::turns_ahead() const {
  Turns turns;
  if (!exchange_.gathers_ahead()) return turns;
  SlotOrder::Works works = works_;
  for (; const SlotOrder::Work* work = works.next(); works.pass()) {
    const std::size_t units = terms_.chunks[work->chunk].size();
    if (units == 0) continue;
    if (turns.first != nullptr) {
      turns.second = unit(*work, 0);
      break;
    }
    turns.first = unit(*work, 0);
    if (units == 1) continue;
    turns.second = unit(*work, 1);
    break;
  }
  return turns;
}

double WalkedStage::slot(const SlotOrder::End& slot, double ready, double& first_s) {
  const SlotOrder::Work work{slot.kind, slot.chunk};
  works_.pass();
  if (terms_.chunks[work.chunk].empty()) {
    wait(ready);
    return first_s = now_s();
  }
  exchange_.ask(*unit(work, 0));
  wait(ready);
  exchanged_s_ += exchange_.exchanged_s();
  from_s_ += exchange_.restart();
  const std::size_t kind = known_.kind_of(stage_, work.chunk, work.kind);
  const auto [first, second] = turns_ahead();
  const BeforeSlot before{exchange_.under_way(), first, second, completes(work)};
  const WalkedSlot* known = known_.find(kind, before);
  if (known == nullptr) known = &known_.keep(kind, before, walk(work, before));
  first_s = from_s_ + known->begin_s;
  from_s_ += known->end_s;
  exchanged_s_ += known->exchanged_s;
  exchange_.restart(known->under_way);
  return from_s_;
}

bool WalkedStage::completes(const SlotOrder::Work& work) const {
  if (!exchange_.reduces_last() || !UnitExchange::makes_gradients(work.kind)) return false;
  SlotOrder::Works works = works_;
  for (; const SlotOrder::Work* later = works.next(); works.pass()) {
    if (later->chunk == work.chunk && UnitExchange::makes_gradients(later->kind)) return false;
  }
  return true;
}

WalkedSlot WalkedStage::walk(const SlotOrder::Work& work, const BeforeSlot& before) {
  const std::size_t units = terms_.chunks[work.chunk].size();
  WalkedSlot slot;
  for (std::size_t k = 0; k < units; ++k) {
    const UnitTerms& now = *unit(work, k);
    if (k > 0) exchange_.ask(now);
    const double begin = exchange_.work(now, work.kind);
    if (k == 0) slot.begin_s = begin;
    const UnitTerms* ahead = k + 2 < units ? unit(work, k + 2) : k + 2 == units ? before.next : before.next_but_one;
    exchange_.follow(now, work.kind, before.reduces, ahead);
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
