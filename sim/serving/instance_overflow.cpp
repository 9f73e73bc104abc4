// What gives way when pages run out, and comes back.
#include <iterator>

#include "sim/serving/instance.hpp"

namespace rehearse::sim {

void Instance::preempt_youngest(double now_s) {
  const auto youngest = std::prev(sequences_.end());
  const RequestId id = youngest->second.id;
  RequestState& request = requests_[id];
  const std::int64_t left = youngest->second.ends - step_, stored = youngest->second.offset + step_, pages = pages_.pages_for(stored);
  leave(youngest);
  request.generated = static_cast<int>(request.tokens.output - left);
  if (std::erase(resumed_, id) == 0) request.last_s = now_s;
  ++request.preemptions;
  request.enter(Stage::queued, now_s);
  std::erase(firsts_, id);
  ++use_.preemptions;
  preempted_ = true;
  if (can_swap(pages)) {
    request.prompt = static_cast<int>(stored);
    swapped_.push_front(id);
    pages_at_host_ += pages;
    use_.swapped_pages += pages;
    return move_pages(pages);
  }
  request.prompt = request.tokens.input + request.generated;
  queue_.push_front(id);
  enqueue(id);
  use_.recomputed_tokens += prompt_tokens(id);
}

bool Instance::can_swap(std::int64_t pages) const {
  return rules_.overflow == Overflow::swap && pages_at_host_ + pages <= rules_.swap_pages;
}

// Before the next pass: nothing else runs meanwhile.
void Instance::move_pages(std::int64_t pages) { swap_s_ += static_cast<double>(pages) * rules_.swap_page_s; }

// With a page more for everybody, so that nobody has to go at once.
bool Instance::brings_back() const {
  if (swapped_.empty() || preempted_ || slots_taken() >= rules_.sequences) return false;
  return pages_.pages_for(std::int64_t{requests_[swapped_.front()].prompt} + 1) <= pages_.available() - count();
}

void Instance::bring_back(double now_s) {
  brought_back_ = false;
  while (brings_back()) {
    const RequestId id = swapped_.front();
    swapped_.pop_front();
    const std::int64_t pages = pages_of(id);
    pages_.take(pages);
    pages_at_host_ -= pages;
    move_pages(pages);
    join(id, now_s);
    if (requests_[id].generated > 0) resumed_.push_back(id);
    brought_back_ = swapped_.empty();
  }
}

void Instance::make_room(double now_s) {
  preempted_ = false;
  while (keeps_growing() && is_running() && pages_.passes_left(1) == 0) preempt_youngest(now_s);
}

}  // namespace rehearse::sim
