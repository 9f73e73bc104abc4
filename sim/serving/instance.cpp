#include "sim/serving/instance.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace rehearse::sim {

std::string_view name_of(Stage stage) {
  constexpr std::array<std::string_view, 10> names{"queued",        "prefilling", "waiting", "aligning", "transferring",
                                                   "decode_queued", "decoding",   "done",    "rejected", "lost"};
  return names[static_cast<std::size_t>(stage)];
}

namespace {

std::int64_t block_pages(const InstanceRules& rules) { return rules.blocks ? rules.blocks->tokens() / rules.page : 1; }

}  // namespace

Instance::Instance(const InstanceRules& rules, const PassPrice& price, std::vector<RequestState>& requests, Gaps& gaps)
    : rules_(rules),
      price_(price),
      requests_(requests),
      gaps_(gaps),
      pages_(rules.pages, rules.page, rules.state_pages),
      prefixes_(block_pages(rules)) {}

std::vector<RequestId> Instance::fail(double now_s) {
  if (const std::int64_t done = passes_done(now_s); done > 0) {
    under_way_.passes = done;
    under_way_.seconds = end_of(done) - under_way_.start_s;
    static_cast<void>(finish(end_of(done)));  // nobody's last token is among them: a run ends with the first answer's end
  } else if (busy()) {
    use_.busy_s += now_s - under_way_.start_s;
    use_.until_s = now_s;
  }
  std::vector<RequestId> lost;
  for (const auto& [order, sequence] : sequences_) {
    RequestState& request = requests_[sequence.id];
    const std::int64_t left = tokens_left(sequence);
    request.generated = static_cast<int>(request.tokens.output - left);
    use_.answer_tokens -= static_cast<double>(left) - shares_left(sequence);  // part of a token is none
    const auto waits = [id = sequence.id](const std::vector<RequestId>& some) { return std::ranges::find(some, id) != some.end(); };
    if (!waits(firsts_) && !waits(resumed_)) request.last_s = std::max(request.last_s, last_decode_s_);
    lost.push_back(sequence.id);
  }
  lost.insert(lost.end(), swapped_.begin(), swapped_.end());
  lost.insert(lost.end(), arrived_.begin(), arrived_.end());
  for (const Prompt& prompt : prefilling_) {
    if (prompt.done < prompt.all) lost.push_back(prompt.id);  // else its cache is waiting to be fetched, and not ours to name
  }
  lost.insert(lost.end(), queue_.begin(), queue_.end());
  forget();
  return lost;
}

void Instance::forget() {
  pages_ = PagePool(rules_.pages, rules_.page, rules_.state_pages);
  prefixes_ = PrefixCache(block_pages(rules_));
  queue_.clear();
  swapped_.clear();
  prefilling_.clear();
  sequences_.clear();
  ends_.clear();
  arrived_.clear();
  queued_s_.clear();
  adopted_s_.clear();
  late_ = late_arrived_ = 0;
  ended_s_ = -1;
  firsts_.clear();
  resumed_.clear();
  more_ = more_offsets_ = 0;
  fresh_ = offsets_ = reserved_ = here_ = tokens_to_come_ = pages_at_host_ = 0;
  backlog_s_ = swap_s_ = 0;
  preempted_ = brought_back_ = false;
  under_way_ = {};
}

void Instance::let_arrived_join(double now_s) {
  const auto last = arrived_.end() - late_arrived_;
  for (auto id = arrived_.begin(); id != last; ++id) {
    --reserved_;
    join(*id, now_s);
    if (requests_[*id].generated > 0) resumed_.push_back(*id);
  }
  arrived_.erase(arrived_.begin(), last);
}

// Who came since the last pass began was not there when this one was put together, unless nothing ran in between.
void Instance::mark_late(double now_s) {
  const auto came_late = [&](std::vector<double>& times) {
    const auto late = rules_.ahead && now_s <= ended_s_ ? std::ranges::count_if(times, [&](double at) { return at > last_pass_s_; }) : 0;
    times.clear();
    return static_cast<std::int64_t>(late);
  };
  late_ = came_late(queued_s_);
  late_arrived_ = came_late(adopted_s_);
}

// Whether the pass can take more after it. A prompt is computed in one lane, the emptiest. Without chunks it runs whole: beside others
// while it fits, and alone in its lane where it never would.
bool Instance::take_chunk(std::size_t prompt, std::int64_t& budget, PassShape& shape) {
  const Prompt& one = prefilling_[prompt];
  const auto lane = std::ranges::min_element(lanes_);
  const std::int64_t left = one.all - one.done;
  const std::int64_t tokens = rules_.chunked_prefill ? std::min({left, budget, lane_tokens() - *lane}) : left;
  const std::int64_t takes = std::min(tokens, lane_tokens());
  if (tokens <= 0 || waits_for_room(takes)) return false;
  const auto q = static_cast<double>(tokens), p = static_cast<double>(one.done);
  shape.prompt_tokens += q;
  shape.prompt_pairs += q * p + q * (q + 1) / 2;
  shape.cached += p;
  shape.chunks += 1;
  shape.finished += tokens == left ? 1 : 0;
  under_way_.chunks.push_back({prompt, tokens});
  budget -= takes;
  *lane += tokens;
  shape.busiest_tokens = std::max(shape.busiest_tokens, static_cast<double>(*lane));
  return budget > 0 && emptiest_lane() < lane_tokens();
}

bool Instance::waits_for_room(std::int64_t tokens) const { return emptiest_lane() > 0 && tokens > lane_tokens() - emptiest_lane(); }

std::int64_t Instance::pass_tokens() const {
  return rules_.tokens - (rules_.batching == Batching::continuous ? count() * (1 + rules_.speculation.tokens) : 0);
}

std::int64_t Instance::lane_tokens() const { return std::max<std::int64_t>(1, (pass_tokens() + rules_.lanes - 1) / rules_.lanes); }

PassShape Instance::gather_chunks(double now_s) {
  PassShape shape;
  const bool fixed = rules_.batching == Batching::fixed;
  batch_open_ = count() == 0 && prefilling_.empty();
  while (fixed && admits_next()) admit_next(now_s);
  batch_open_ = false;
  lanes_.assign(static_cast<std::size_t>(rules_.lanes), 0);
  std::int64_t budget = pass_tokens();
  bool more = budget > 0;
  for (std::size_t i = 0; more && i < prefilling_.size(); ++i) more = take_chunk(i, budget, shape);
  while (more && admits_next()) {
    const bool waits =
        !rules_.chunked_prefill && waits_for_room(std::min(prompt_tokens(queue_.front()) - found(queue_.front()), lane_tokens()));
    if (waits) break;
    admit_next(now_s);
    more = take_chunk(prefilling_.size() - 1, budget, shape);
  }
  return shape;
}

std::optional<double> Instance::start(double now_s) {
  under_way_ = {};
  mark_late(now_s);
  if (arrived_join()) let_arrived_join(now_s);
  make_room(now_s);
  bring_back(now_s);
  PassShape prompts = gather_chunks(now_s);
  if (under_way_.chunks.empty() && !is_running() && late_ + late_arrived_ > 0) {  // nothing else is to be done
    late_ = late_arrived_ = 0;
    if (arrived_join()) let_arrived_join(now_s);
    prompts = gather_chunks(now_s);
  }
  if (under_way_.chunks.empty() && !is_running()) return std::nullopt;
  under_way_.start_s = now_s;
  under_way_.slowdown = slowdown_;
  under_way_.swap_s = std::exchange(swap_s_, 0);
  under_way_.chunks.empty() ? start_run() : start_mixed(prompts);
  return under_way_.seconds;
}

void Instance::start_run() {
  std::int64_t passes = rules_.one_by_one ? 1 : ends_.begin()->first - step_;
  if (preempted_ || under_way_.swap_s > 0 || late_ + late_arrived_ > 0) passes = 1;  // whoever had to go, or waits, may come after it
  if (keeps_growing()) passes = pages_.passes_left(passes);
  under_way_.decodes = true;
  under_way_.passes = passes;
  under_way_.line = decode_line();
  under_way_.shape.decodes = static_cast<double>(count());
  under_way_.shape.context = decode_context();
  under_way_.seconds = under_way_.swap_s + under_way_.line.seconds(decode_context(), growth(), static_cast<double>(passes));
}

void Instance::start_mixed(PassShape shape) {
  under_way_.passes = 1;
  under_way_.decodes = rules_.batching == Batching::continuous && is_running();
  if (under_way_.decodes) {
    shape.decodes = static_cast<double>(count());
    shape.context = decode_context();
  }
  under_way_.shape = shape;
  const PassCost cost = price_.parts(shape);
  under_way_.mix = mix_of(cost);
  under_way_.seconds = under_way_.swap_s + slowdown_ * cost.seconds();
}

DecodeLine Instance::decode_line() const {
  const DecodeLine line = price_.decode(static_cast<int>(count()));
  return {slowdown_ * line.base_s, slowdown_ * line.per_token_s, slowdown_ * line.floor_s, slowdown_ * line.after_s};
}

// The passes of a run that have ended by now.
std::int64_t Instance::passes_done(double now_s) const {
  if (under_way_.passes <= 1 || !under_way_.chunks.empty()) return 0;
  std::int64_t low = 0, high = under_way_.passes;
  while (high - low > 1) {
    const std::int64_t middle = low + (high - low) / 2;
    (end_of(middle) <= now_s ? low : high) = middle;
  }
  return low;
}

double Instance::end_of(std::int64_t passes) const {
  return under_way_.start_s + under_way_.line.seconds(decode_context(), growth(), static_cast<double>(passes));
}

std::int64_t Instance::pages_used(double now_s) const {
  return pages_.used() + (keeps_growing() ? pages_.more_after(passes_done(now_s)) : 0);
}

std::int64_t Instance::pages_at_end() const {
  return pages_.used() + (keeps_growing() && under_way_.decodes ? pages_.more_after(under_way_.passes) : 0);
}

std::int64_t Instance::running() const {
  return count() + std::ranges::count_if(prefilling_, [](const Prompt& prompt) { return prompt.done < prompt.all; });
}

PassRun Instance::under_way() const {
  PassRun run{.start_s = under_way_.start_s,
              .seconds = under_way_.seconds,
              .passes = under_way_.passes,
              .prompts = static_cast<std::int64_t>(under_way_.chunks.size())};
  for (const Chunk& chunk : under_way_.chunks) run.prompt_tokens += chunk.tokens;
  if (under_way_.decodes) run.sequences = count();
  return run;
}

std::vector<Instance::Part> Instance::in_pass() const {
  std::vector<Part> parts;
  for (const Chunk& chunk : under_way_.chunks) {
    const Prompt& prompt = prefilling_[chunk.prompt];
    parts.push_back({prompt.id, prompt.done, prompt.done + chunk.tokens, prompt.all});
  }
  return parts;
}

}  // namespace rehearse::sim
