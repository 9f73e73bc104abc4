// One instance of an engine: its queue, its batch, its cache, and what it runs next. Knows no clock but what it is told.
//
// A run of decode passes between two changes of the batch is one activity: its length is closed (DecodeLine), it ends at the next answer's
// end or where pages run out, and it is cut at the end of a pass when somebody comes who can take part.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "sim/cost/engine_habits.hpp"
#include "sim/serving/gaps.hpp"
#include "sim/serving/length_range.hpp"
#include "sim/serving/page_pool.hpp"
#include "sim/serving/pass_mix.hpp"
#include "sim/serving/pass_price.hpp"
#include "sim/serving/prefix_cache.hpp"
#include "sim/serving/request_state.hpp"
#include "sim/serving/speculation.hpp"

namespace rehearse::sim {

enum class Role { both, prefill, decode };

struct InstanceRules {
  Role role = Role::both;
  Batching batching = Batching::continuous;
  bool chunked_prefill = true;
  Overflow overflow = Overflow::recompute;
  std::int64_t sequences = 256;  // at once
  std::int64_t tokens = 8192;    // of a pass
  // Attention replicas, each with as many groups in flight as there are stages: a prompt's tokens of a pass are in one, decoding
  // sequences and the tokens of a pass are shared evenly.
  std::int64_t lanes = 1;
  std::int64_t pages = 1;
  std::int64_t free_pages = 0;  // that whoever is admitted leaves
  int page = 16;
  std::int64_t state_pages = 0;  // of a sequence, beside those of its tokens
  bool ahead = false;            // the next pass is put together when one begins: who comes meanwhile joins the one after it
  double swap_page_s = 0;        // overflow: swap: a page to the host's memory, or back
  std::int64_t swap_pages = std::numeric_limits<std::int64_t>::max();  // that the host's memory holds; the tokens of others are recomputed
  Speculation speculation = {};                                        // of tokens; needs a cache that does not grow: overflow: reserve
  std::uint64_t drawing_seed = 0;  // of how many of them are taken: by request, whatever instance decodes it
  std::shared_ptr<const workloads::PromptBlocks> blocks = nullptr;  // of the prompts: those that come again are found in the cache
  LengthRange prompts = {};                                         // that a router by length sends here
  bool one_by_one = false;  // every decode pass is an activity of its own, as where it goes layer by layer: the same answer

  [[nodiscard]] std::int64_t state_tokens() const { return state_pages * page; }  // that would take as much
  [[nodiscard]] std::int64_t usable_pages() const { return pages - free_pages; }  // of those that are admitted
};

// What an instance did.
struct InstanceUse {
  double busy_s = 0, until_s = 0;  // and when it was busy last
  double passes = 0, decode_passes = 0;
  double prompt_tokens = 0, answer_tokens = 0;
  double begun_tokens = 0, found_tokens = 0;  // of prompts that were begun, or came from elsewhere; of those in the cache already
  double batch = 0;                           // sum over decode passes of the sequences in them
  double sequence_seconds = 0;                // integral of the decoding sequences over the time of decode passes
  double page_seconds = 0;                    // integral of the pages taken over busy time
  std::int64_t most_pages = 0;
  int preemptions = 0;
  std::int64_t recomputed_tokens = 0;
  std::int64_t swapped_pages = 0;  // to the host; as many came back, of who was not lost
  double swap_s = 0;               // of busy_s, until pages were there or gone
  // Seconds of passes, times the prompts in them; times the sequences that decode in them, and the tokens that these got.
  PassMix prompt_mix, decode_mix;
  double decoded_tokens = 0;
};

// A run of passes as it is under way.
struct PassRun {
  double start_s = 0, seconds = 0;
  std::int64_t passes = 0;  // 0: nothing
  std::int64_t prompts = 0, prompt_tokens = 0, sequences = 0;
};

class Instance {
 public:
  // All must outlive it.
  Instance(const InstanceRules& rules, const PassPrice& price, std::vector<RequestState>& requests, Gaps& gaps);

  // Whether a request can ever be served here.
  [[nodiscard]] bool can_hold(const workloads::Lengths& tokens) const;
  [[nodiscard]] bool takes(RequestId id) const { return rules_.prompts.has(requests_[id].tokens.input); }  // by its prompt's length
  void submit(RequestId id, double now_s);                                                                 // its prompt is to be computed
  // Room for a cache that comes from elsewhere: false when there is none now.
  [[nodiscard]] bool reserve(RequestId id, double now_s);
  // The cache for which room was made is here. Whether those that wait for room may need less of it now.
  bool adopt(RequestId id, double now_s);
  void release(RequestId id);  // a prompt's cache that was kept here is no longer needed

  // Whether who found none before may find room since what is under way started: sequences were put back, or none is at the host any more.
  [[nodiscard]] bool made_room() const { return preempted_ || brought_back_; }
  [[nodiscard]] bool busy() const { return under_way_.passes > 0; }
  [[nodiscard]] PassRun under_way() const;
  // Begins the next pass or run of passes; seconds until its end. Nothing when there is nothing to do.
  [[nodiscard]] std::optional<double> start(double now_s);
  // When what is under way can end at an earlier end of a pass for the sake of who came: that time.
  [[nodiscard]] std::optional<double> cut(double now_s);

  // It stops working and forgets everything: who was queued, computing, decoding or had just come, in the order in which they would go on.
  // Tokens of passes that have ended are shown.
  [[nodiscard]] std::vector<RequestId> fail(double now_s);
  void cancel(RequestId id, double now_s);             // the cache for which room was made does not come
  void slow_down(double times) { slowdown_ = times; }  // passes that begin from now on take so many times as long
  [[nodiscard]] double slowdown() const { return slowdown_; }

  struct Progress {
    RequestId id = 0;
    std::int64_t tokens = 0;  // of its prompt that are computed
  };
  struct Finished {
    std::vector<Progress> begun;     // prompts that are not whole yet
    std::vector<RequestId> prompts;  // computed here, to be decoded elsewhere; their pages stay taken until release()
    std::vector<RequestId> answers;
  };
  [[nodiscard]] Finished finish(double now_s);
  // The single pass under way takes until then, since what it sends was slower or faster than it is alone.
  void ends_at(double now_s) {
    under_way_.seconds = now_s - under_way_.start_s;
    under_way_.measured = true;
  }
  [[nodiscard]] const PassShape& pass_shape() const { return under_way_.shape; }  // of the pass under way, or the first of the run
  struct Part {                                                                   // of a prompt, in the pass under way
    RequestId id = 0;
    std::int64_t before = 0, after = 0, all = 0;  // tokens
  };
  [[nodiscard]] std::vector<Part> in_pass() const;

  [[nodiscard]] const InstanceUse& use() const { return use_; }
  [[nodiscard]] std::int64_t pages_used(double now_s) const;  // after the passes that have ended by now
  [[nodiscard]] std::int64_t pages() const { return pages_.pages(); }
  [[nodiscard]] std::int64_t pages_at_end() const;  // of what is under way, before anybody leaves
  [[nodiscard]] std::int64_t waiting() const { return static_cast<std::int64_t>(queue_.size() + swapped_.size()); }
  [[nodiscard]] std::int64_t running() const;                                    // prompts begun and not done, sequences that decode
  [[nodiscard]] std::int64_t requests_here() const { return here_; }             // queued, computing, decoding, on their way in
  [[nodiscard]] std::int64_t tokens_to_come() const { return tokens_to_come_; }  // prompt tokens not yet computed
  [[nodiscard]] double backlog_s(double now_s) const;                            // until the prompts here are computed, each priced alone
  // What a router would do with a request that comes now: a prompt alone, without what is found of it; or the share of its cache that would
  // be taken, were what is found there free.
  [[nodiscard]] double prompt_s(RequestId id, double now_s);
  [[nodiscard]] double filled_with(RequestId id, double now_s);
  [[nodiscard]] bool computes_prompts() const { return rules_.role != Role::decode; }

 private:
  struct Sequence {
    RequestId id = 0;
    std::int64_t ends = 0;    // the decode step after which it is done
    std::int64_t offset = 0;  // tokens in its cache minus the decode step, were there one a pass
    double more = 0;          // tokens that a pass brings beside it, on average of its own passes
    std::int64_t joined = 0;  // the decode step
  };
  struct Prompt {
    RequestId id = 0;
    std::int64_t done = 0, all = 0;
  };
  struct Chunk {
    std::size_t prompt = 0;  // in prefilling_
    std::int64_t tokens = 0;
  };
  struct UnderWay {
    double start_s = 0, seconds = 0;
    double slowdown = 1;
    std::int64_t passes = 0;
    bool decodes = false;  // the decoding sequences take part
    double swap_s = 0;     // before it
    std::vector<Chunk> chunks;
    DecodeLine line;  // of a run without chunks
    PassShape shape;
    PassMix mix;            // of a single pass with prompts
    bool measured = false;  // its seconds are not its price
  };

  [[nodiscard]] bool is_running() const { return !sequences_.empty(); }
  [[nodiscard]] double decode_context() const {
    return static_cast<double>(offsets_ + count() * (step_ + 1)) + more_offsets_ + more_ * static_cast<double>(step_);
  }
  // Tokens that a decode pass adds to the caches.
  [[nodiscard]] double growth() const { return static_cast<double>(count()) + more_; }
  [[nodiscard]] double shares_left(const Sequence& sequence) const {
    return static_cast<double>(sequence.ends - step_) * (1 + sequence.more);
  }
  [[nodiscard]] std::int64_t tokens_left(const Sequence& sequence) const;
  [[nodiscard]] std::int64_t count() const { return static_cast<std::int64_t>(sequences_.size()); }
  [[nodiscard]] std::int64_t slots_taken() const { return count() + static_cast<std::int64_t>(prefilling_.size()) + reserved_; }
  [[nodiscard]] std::int64_t prompt_tokens(RequestId id) const;
  [[nodiscard]] std::int64_t pages_of(RequestId id) const;
  [[nodiscard]] bool keeps_growing() const { return rules_.overflow != Overflow::reserve && rules_.batching != Batching::fixed; }
  // A static batch is decoded to its end before the caches that came meanwhile make the next one.
  [[nodiscard]] bool arrived_join() const { return !arrived_.empty() && (rules_.batching != Batching::fixed || !is_running()); }
  [[nodiscard]] std::int64_t passes_done(double now_s) const;
  [[nodiscard]] double end_of(std::int64_t passes) const;
  [[nodiscard]] double alone_s(RequestId id) const;
  [[nodiscard]] PromptPrefix blocks_of(RequestId id) const { return rules_.blocks ? rules_.blocks->of(id) : PromptPrefix(); }
  [[nodiscard]] int found(RequestId id) const;
  void enqueue(RequestId id);
  void take_pages(RequestId id, double now_s);
  void give_pages(RequestId id, std::int64_t pages);
  void keep_blocks(double now_s);
  void add_blocks(RequestId id, std::int64_t tokens);
  [[nodiscard]] bool admits_next() const;
  void admit_next(double now_s);
  void make_room(double now_s);
  void preempt_youngest(double now_s);
  void move_pages(std::int64_t pages);
  [[nodiscard]] bool can_swap(std::int64_t pages) const;
  [[nodiscard]] bool brings_back() const;
  void bring_back(double now_s);
  void let_arrived_join(double now_s);
  void mark_late(double now_s);
  [[nodiscard]] bool waits_for_room(std::int64_t tokens) const;  // of the emptiest lane, which has prompts already
  [[nodiscard]] std::int64_t pass_tokens() const;                // for prompts
  [[nodiscard]] std::int64_t lane_tokens() const;                // of them, of one lane
  [[nodiscard]] std::int64_t emptiest_lane() const { return *std::ranges::min_element(lanes_); }
  [[nodiscard]] PassShape gather_chunks(double now_s);
  void start_run();
  void start_mixed(PassShape shape);
  void join(RequestId id, double now_s);
  void leave(std::map<std::uint64_t, Sequence>::iterator sequence);
  void end_prompt(RequestId id, double now_s, Finished& finished);
  [[nodiscard]] bool take_chunk(std::size_t prompt, std::int64_t& budget, PassShape& shape);
  void advance_decodes(double now_s, Finished& finished);
  void count_gaps(double first_pass_s);
  void count_use();
  void count_mix();
  void forget();
  [[nodiscard]] DecodeLine decode_line() const;

  InstanceRules rules_;
  const PassPrice& price_;
  std::vector<RequestState>& requests_;
  Gaps& gaps_;
  PagePool pages_;
  PrefixCache prefixes_;
  std::deque<RequestId> queue_;
  std::deque<RequestId> swapped_;  // their pages are at the host; the oldest first
  std::int64_t pages_at_host_ = 0;
  double swap_s_ = 0;  // of pages that move before the next pass
  std::deque<Prompt> prefilling_;
  std::map<std::uint64_t, Sequence> sequences_;            // decoding, by the order in which they joined
  std::set<std::pair<std::int64_t, std::uint64_t>> ends_;  // (step, order) of the same
  std::vector<RequestId> arrived_;                         // adopted, to join at the end of the pass
  std::vector<double> queued_s_, adopted_s_;               // when the last of queue_ and arrived_ came, since what is under way began
  std::int64_t late_ = 0, late_arrived_ = 0;               // at their ends, too late for the next pass
  double last_pass_s_ = 0, ended_s_ = -1;                  // of the run before: when its last pass began, and when it ended
  std::vector<RequestId> firsts_;                          // decoding, without a token yet
  std::vector<RequestId> resumed_;                         // decoding, whose newest token the other side made
  std::int64_t fresh_ = 0;                                 // joined since the last decode pass
  std::uint64_t next_order_ = 0;
  std::int64_t step_ = 0;               // decode passes so far
  std::int64_t offsets_ = 0;            // sum over sequences_
  double more_ = 0, more_offsets_ = 0;  // sums over sequences_: of `more`, and of it times the step they joined at, negative
  std::int64_t reserved_ = 0;           // slots kept for caches on their way
  std::int64_t here_ = 0, tokens_to_come_ = 0;
  double backlog_s_ = 0;
  bool batch_open_ = true;     // static batches: still being put together
  bool preempted_ = false;     // pages ran out before this pass: nobody is admitted
  bool brought_back_ = false;  // the last of those at the host, before this pass
  double last_decode_s_ = 0;
  double slowdown_ = 1;
  std::vector<std::int64_t> lanes_;  // prompt tokens in each, of the pass that is put together
  UnderWay under_way_;
  InstanceUse use_;
};

}  // namespace rehearse::sim
