// The pages of an instance's cache, and how many of them sequences will need that all grow by a token per pass. A sequence is known by the
// place of its next token in a page alone, so that a question costs the tokens of a page and not the sequences. Each takes so many pages
// beside those of its tokens, which do not grow: the states of mixers.
#pragma once

#include <cstdint>
#include <vector>

namespace rehearse::sim {

class PagePool {
 public:
  PagePool(std::int64_t pages, int page_tokens, std::int64_t state_pages = 0)
      : pages_(pages), state_pages_(state_pages), starts_(static_cast<std::size_t>(page_tokens)) {}

  [[nodiscard]] std::int64_t pages_for(std::int64_t tokens) const {
    const auto page = static_cast<std::int64_t>(starts_.size());
    return (tokens + page - 1) / page + state_pages_;
  }
  [[nodiscard]] std::int64_t pages() const { return pages_; }
  [[nodiscard]] std::int64_t used() const { return used_; }
  [[nodiscard]] std::int64_t available() const { return pages_ - used_; }
  void take(std::int64_t pages) { used_ += pages; }
  void give(std::int64_t pages) { used_ -= pages; }

  // A sequence with so many tokens in its pages (which are taken already) grows from now on, or no longer.
  void grow(std::int64_t tokens) {
    ++starts_[slot(tokens)];
    ++growing_;
  }
  void stop(std::int64_t tokens) {
    --starts_[slot(tokens)];
    --growing_;
  }
  // Pages that the growing sequences need more after so many passes.
  [[nodiscard]] std::int64_t more_after(std::int64_t passes) const;
  // The most passes, up to `limit`, for which the pages last; 0: not even one.
  [[nodiscard]] std::int64_t passes_left(std::int64_t limit) const;
  void advance(std::int64_t passes);

 private:
  // The place of the last token in its page when no pass had run: the same for a sequence for good.
  [[nodiscard]] std::size_t slot(std::int64_t tokens) const {
    const std::int64_t page = page_tokens();
    return static_cast<std::size_t>((((tokens - 1 - passes_) % page) + page) % page);
  }
  [[nodiscard]] std::int64_t page_tokens() const { return static_cast<std::int64_t>(starts_.size()); }
  // The slot whose sequences need a page in the next pass, and the one whose do in the pass behind that of a slot.
  [[nodiscard]] std::int64_t full_next() const { return page_tokens() - 1 - passes_ % page_tokens(); }
  [[nodiscard]] std::int64_t before(std::int64_t slot) const { return slot > 0 ? slot - 1 : page_tokens() - 1; }
  std::int64_t pages_, state_pages_, used_ = 0, passes_ = 0, growing_ = 0;
  std::vector<std::int64_t> starts_;  // [slot] growing sequences
};

}  // namespace rehearse::sim
