// Who is let in, and the pages that they take: queued requests, and caches that come from elsewhere.
#include <algorithm>

#include "sim/serving/instance.hpp"

namespace rehearse::sim {

std::int64_t Instance::prompt_tokens(RequestId id) const { return requests_[id].prompt; }

// What a request takes when it is admitted: its whole life where the cache does not grow.
std::int64_t Instance::pages_of(RequestId id) const {
  const workloads::Lengths& tokens = requests_[id].tokens;
  if (rules_.role == Role::prefill || keeps_growing()) return pages_.pages_for(prompt_tokens(id));
  return pages_.pages_for(std::int64_t{tokens.input} + tokens.output);
}

bool Instance::can_hold(const workloads::Lengths& tokens) const {
  const std::int64_t all = rules_.role == Role::prefill ? tokens.input : std::int64_t{tokens.input} + tokens.output;
  return pages_.pages_for(all) <= rules_.usable_pages();
}

void Instance::submit(RequestId id, double now_s) {
  keep_blocks(now_s);
  queue_.push_back(id);
  queued_s_.push_back(now_s);
  ++here_;
  enqueue(id);
}

// As much of it as is found now counts as computed, until it is begun.
void Instance::enqueue(RequestId id) {
  requests_[id].found = found(id);
  tokens_to_come_ += prompt_tokens(id) - requests_[id].found;
  backlog_s_ += alone_s(id);
}

double Instance::alone_s(RequestId id) const {
  const auto cached = static_cast<double>(requests_[id].found), n = static_cast<double>(prompt_tokens(id)) - cached;
  PassShape shape;
  shape.prompt_tokens = n;
  shape.prompt_pairs = n * cached + n * (n + 1) / 2;
  shape.cached = cached;
  shape.chunks = shape.finished = 1;
  return price_.seconds(shape);
}

double Instance::backlog_s(double now_s) const { return backlog_s_ - (under_way_.chunks.empty() ? 0 : now_s - under_way_.start_s); }

// Of its prompt, in the cache; at least the last token's page is computed, or handed over, in any case.
int Instance::found(RequestId id) const {
  if (!rules_.blocks) return 0;
  const std::int64_t blocks = prefixes_.found(blocks_of(id)), most = (prompt_tokens(id) - 1) / rules_.page * rules_.page;
  return static_cast<int>(std::min(blocks * rules_.blocks->tokens(), most));
}

double Instance::prompt_s(RequestId id, double now_s) {
  keep_blocks(now_s);
  requests_[id].found = found(id);
  return alone_s(id);
}

double Instance::filled_with(RequestId id, double now_s) {
  keep_blocks(now_s);
  const std::int64_t more = pages_of(id) - pages_.pages_for(found(id));
  return static_cast<double>(pages_used(now_s) + more) / static_cast<double>(pages_.pages());
}

// Pages of blocks that others use are taken already; those of blocks that nobody used are taken again.
void Instance::take_pages(RequestId id, double now_s) {
  pages_.take(rules_.blocks ? pages_of(id) - prefixes_.hold(id, blocks_of(id)) : pages_of(id));
  keep_blocks(now_s);
}

void Instance::give_pages(RequestId id, std::int64_t pages) {
  pages_.give(rules_.blocks ? pages - prefixes_.drop(id, blocks_of(id)) : pages);
}

// Blocks that nobody uses have what is left after the passes that have ended by now: to be settled before pages are given back, and before
// anybody looks for blocks.
void Instance::keep_blocks(double now_s) {
  if (rules_.blocks) prefixes_.keep_within(pages_.pages() - pages_used(now_s));
}

// So much of its prompt is here.
void Instance::add_blocks(RequestId id, std::int64_t tokens) {
  if (!rules_.blocks) return;
  const PromptPrefix blocks = blocks_of(id);
  const std::int64_t whole = std::min(tokens / rules_.blocks->tokens(), static_cast<std::int64_t>(blocks.size()));
  pages_.give(prefixes_.add(id, blocks, whole));
}

// The pass under way keeps the pages that it will take.
bool Instance::reserve(RequestId id, double now_s) {
  const std::int64_t pages = pages_of(id) - prefixes_.pages_in_use(blocks_of(id)),
                     growth = keeps_growing() && busy() ? pages_.more_after(passes_done(now_s) + 1) : 0;
  if (!swapped_.empty() || slots_taken() >= rules_.sequences || pages > pages_.available() - std::max(growth, rules_.free_pages))
    return false;
  keep_blocks(now_s);
  requests_[id].there = found(id);
  take_pages(id, now_s);
  ++reserved_;
  ++here_;
  return true;
}

bool Instance::adopt(RequestId id, double now_s) {
  keep_blocks(now_s);
  arrived_.push_back(id);
  adopted_s_.push_back(now_s);
  use_.begun_tokens += static_cast<double>(prompt_tokens(id));
  use_.found_tokens += requests_[id].there;
  add_blocks(id, prompt_tokens(id));
  return rules_.blocks != nullptr;
}

void Instance::cancel(RequestId id, double now_s) {
  keep_blocks(now_s);
  give_pages(id, pages_of(id));
  requests_[id].there = 0;
  --reserved_;
  --here_;
}

void Instance::release(RequestId id) {
  give_pages(id, pages_of(id));
  --here_;
}

bool Instance::admits_next() const {
  if (static_cast<std::int64_t>(queue_.size()) <= late_ || preempted_ || !swapped_.empty() || slots_taken() >= rules_.sequences)
    return false;
  if (rules_.batching == Batching::fixed && !batch_open_) return false;
  // A page for each sequence that decodes: what a pass needs at most, so that who is not admitted now is not until somebody leaves.
  const std::int64_t growth = keeps_growing() ? count() : 0;
  return pages_of(queue_.front()) - prefixes_.pages_in_use(blocks_of(queue_.front())) <=
         pages_.available() - std::max(growth, rules_.free_pages);
}

void Instance::admit_next(double now_s) {
  const RequestId id = queue_.front();
  queue_.pop_front();
  RequestState& request = requests_[id];
  if (rules_.blocks) {  // what is found now, not when it came
    tokens_to_come_ += request.found;
    backlog_s_ -= alone_s(id);
    request.found = found(id);
    tokens_to_come_ -= request.found;
    backlog_s_ += alone_s(id);
    request.reused += request.found;
  }
  take_pages(id, now_s);
  use_.begun_tokens += static_cast<double>(prompt_tokens(id));
  use_.found_tokens += request.found;
  prefilling_.push_back({id, request.found, prompt_tokens(id)});
  request.enter(Stage::prefilling, now_s);
}

}  // namespace rehearse::sim
