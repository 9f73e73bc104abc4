// What the end of a pass leaves of an instance: who joins, leaves and goes on, and what is counted.
#include <algorithm>
#include <cmath>

#include "sim/serving/instance.hpp"

namespace rehearse::sim {

void Instance::join(RequestId id, double now_s) {
  RequestState& request = requests_[id];
  const std::int64_t stored = request.prompt;  // what was computed before its newest token
  const std::int64_t left = request.tokens.output - request.generated;
  const std::uint64_t drawn = config::mixed(rules_.drawing_seed + config::golden_gamma * (id + 1)) + static_cast<std::uint64_t>(left);
  const std::int64_t passes = rules_.speculation.draw_passes(left, config::Random(drawn));
  const Sequence sequence{id, step_ + passes, stored - step_, static_cast<double>(left) / static_cast<double>(passes) - 1, step_};
  more_ += sequence.more;
  more_offsets_ -= sequence.more * static_cast<double>(step_);
  if (keeps_growing()) pages_.grow(stored);
  offsets_ += sequence.offset;
  ends_.emplace(sequence.ends, next_order_);
  sequences_.emplace(next_order_++, sequence);
  if (request.generated == 0) firsts_.push_back(id);
  ++fresh_;
  request.enter(Stage::decoding, now_s);
}

// Tokens come evenly over the passes that were drawn.
std::int64_t Instance::tokens_left(const Sequence& sequence) const {
  constexpr double rounding = 1e-12;
  return static_cast<std::int64_t>(std::ceil(shares_left(sequence) * (1 - rounding)));
}

void Instance::leave(std::map<std::uint64_t, Sequence>::iterator sequence) {
  const std::int64_t stored = sequence->second.offset + step_;
  if (keeps_growing()) {
    pages_.stop(stored);
    give_pages(sequence->second.id, pages_.pages_for(stored));
  } else {
    give_pages(sequence->second.id, pages_of(sequence->second.id));
  }
  offsets_ -= sequence->second.offset;
  more_ -= sequence->second.more;
  more_offsets_ += sequence->second.more * static_cast<double>(sequence->second.joined);
  if (count() == 1) more_ = more_offsets_ = 0;  // nothing is left of rounding
  ends_.erase({sequence->second.ends, sequence->first});
  sequences_.erase(sequence);
}

void Instance::end_prompt(RequestId id, double now_s, Finished& finished) {
  RequestState& request = requests_[id];
  backlog_s_ = tokens_to_come_ > 0 ? backlog_s_ - alone_s(id) : 0;  // idle ones are alike, whatever was rounded
  if (rules_.role == Role::prefill) {
    finished.prompts.push_back(id);
    return;
  }
  const std::int64_t pages = pages_of(id);
  if (request.first_s < 0) request.first_s = now_s;
  if (request.generated > 0) gaps_.add(now_s - request.last_s, 1);
  ++request.generated;
  ++use_.answer_tokens;
  request.last_s = now_s;
  if (request.generated < request.tokens.output) return join(id, now_s);
  give_pages(id, pages);
  request.enter(Stage::done, now_s);
  --here_;
  finished.answers.push_back(id);
}

// Those who were here before waited since the last decode pass; those who came have had their token since, here or, with the cache handed
// over, at the other side.
void Instance::count_gaps(double first_pass_s) {
  const auto sequences = static_cast<double>(count()), passes = static_cast<double>(under_way_.passes);
  const double waited = std::max(0.0, under_way_.start_s - last_decode_s_), fresh = static_cast<double>(fresh_);
  gaps_.add(first_pass_s + waited, sequences - fresh);
  gaps_.add(first_pass_s, fresh - static_cast<double>(firsts_.size() + resumed_.size()));
  for (const RequestId id : resumed_) gaps_.add(under_way_.start_s + first_pass_s - requests_[id].last_s, 1);
  resumed_.clear();
  if (passes > 1) {
    const DecodeLine& line = under_way_.line;
    const double context = decode_context();
    gaps_.add_run(line.seconds(context + growth()), line.seconds(context + growth() * (passes - 1)), passes - 1, sequences);
  }
  gaps_.add(0, more_ * passes);  // tokens of one pass come together
  fresh_ = 0;
}

void Instance::advance_decodes(double now_s, Finished& finished) {
  const bool shared = !under_way_.chunks.empty() || under_way_.swap_s > 0 || under_way_.measured;  // a single pass
  const double first_s = shared ? under_way_.seconds : under_way_.line.seconds(decode_context());
  count_gaps(first_s);
  for (const RequestId id : firsts_) {
    if (requests_[id].first_s < 0) requests_[id].first_s = under_way_.start_s + first_s;
  }
  firsts_.clear();
  use_.answer_tokens += growth() * static_cast<double>(under_way_.passes);
  step_ += under_way_.passes;
  if (keeps_growing()) pages_.advance(under_way_.passes);
  if (rules_.blocks) prefixes_.keep_within(pages_.available());  // before pages are given back
  last_decode_s_ = now_s;
  while (!ends_.empty() && ends_.begin()->first <= step_) {
    const auto sequence = sequences_.find(ends_.begin()->second);
    const RequestId id = sequence->second.id;
    leave(sequence);
    requests_[id].generated = requests_[id].tokens.output;
    requests_[id].last_s = now_s;
    requests_[id].enter(Stage::done, now_s);
    --here_;
    finished.answers.push_back(id);
  }
}

void Instance::count_use() {
  use_.busy_s += under_way_.seconds;
  use_.until_s = under_way_.start_s + under_way_.seconds;
  use_.swap_s += under_way_.swap_s;
  use_.passes += static_cast<double>(under_way_.passes);
  use_.page_seconds += under_way_.seconds * static_cast<double>(pages_.used() + pages_at_end()) / 2;
  use_.most_pages = std::max(use_.most_pages, pages_at_end());
  count_mix();
  if (!under_way_.decodes) return;
  use_.decode_passes += static_cast<double>(under_way_.passes);
  use_.batch += static_cast<double>(under_way_.passes * count());
  use_.sequence_seconds += under_way_.seconds * static_cast<double>(count());
}

// In the proportions of its price, of a run of its middle pass. While pages move everybody waits.
void Instance::count_mix() {
  const auto passes = static_cast<double>(under_way_.passes);
  PassMix mix = under_way_.mix;
  if (under_way_.chunks.empty()) {
    PassShape shape = under_way_.shape;
    shape.context += growth() * (passes - 1) / 2;
    mix = mix_of(price_.parts(shape));
  }
  mix = mix.scaled_to(under_way_.seconds - under_way_.swap_s);
  mix.waiting += under_way_.swap_s;
  use_.prompt_mix.add(mix, static_cast<double>(under_way_.chunks.size()));
  if (!under_way_.decodes) return;
  use_.decode_mix.add(mix, static_cast<double>(count()));
  use_.decoded_tokens += growth() * passes;
}

Instance::Finished Instance::finish(double now_s) {
  Finished finished;
  last_pass_s_ = under_way_.passes > 1 ? end_of(under_way_.passes - 1) : under_way_.start_s;
  ended_s_ = now_s;
  count_use();
  if (under_way_.decodes) advance_decodes(now_s, finished);
  for (const Chunk& chunk : under_way_.chunks) {
    Prompt& prompt = prefilling_[chunk.prompt];
    prompt.done += chunk.tokens;
    tokens_to_come_ -= chunk.tokens;
    use_.prompt_tokens += static_cast<double>(chunk.tokens);
    add_blocks(prompt.id, prompt.done);
    prompt.done == prompt.all ? end_prompt(prompt.id, now_s, finished) : finished.begun.push_back({prompt.id, prompt.done});
  }
  while (!prefilling_.empty() && prefilling_.front().done == prefilling_.front().all) prefilling_.pop_front();
  under_way_ = {};
  return finished;
}

// For who came and for another speed, at the end of the pass under way; for who took pages, before those that are left run out.
std::optional<double> Instance::cut(double now_s) {
  if (under_way_.passes <= 1 || !under_way_.chunks.empty()) return std::nullopt;
  const std::int64_t done = passes_done(now_s), next = done > 0 && end_of(done) >= now_s ? done : done + 1;
  const bool goes_on = !arrived_join() && !brings_back() && !admits_next() && under_way_.slowdown == slowdown_;
  std::int64_t passes = goes_on ? under_way_.passes : next;
  if (keeps_growing()) passes = std::min(passes, std::max(next, pages_.passes_left(under_way_.passes)));
  if (passes >= under_way_.passes) return std::nullopt;
  under_way_.passes = passes;
  under_way_.seconds = end_of(passes) - under_way_.start_s;
  return end_of(passes);
}

}  // namespace rehearse::sim
