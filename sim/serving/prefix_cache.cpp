#include "sim/serving/prefix_cache.hpp"

namespace rehearse::sim {

std::int64_t PrefixCache::found(PromptPrefix prompt) const {
  std::int64_t count = 0;
  for (const workloads::BlockId block : prompt) {
    if (!blocks_.contains(block)) break;
    ++count;
  }
  return count;
}

std::int64_t PrefixCache::pages_in_use(PromptPrefix prompt) const {
  std::int64_t count = 0;
  for (const workloads::BlockId block : prompt) {
    const auto here = blocks_.find(block);
    if (here == blocks_.end() || here->second.users == 0) break;  // who uses a block uses those before it
    ++count;
  }
  return count * block_pages_;
}

// Whether somebody else uses it too.
bool PrefixCache::use(workloads::BlockId block) {
  Block& one = blocks_[block];
  if (one.users == 0) idle_.erase(one.used);
  return ++one.users > 1;
}

std::int64_t PrefixCache::hold(RequestId id, PromptPrefix prompt) {
  const std::int64_t count = found(prompt);
  std::int64_t shared = 0;
  for (std::int64_t i = 0; i < count; ++i) shared += use(prompt[static_cast<std::size_t>(i)]) ? 1 : 0;
  held_[id] = count;
  return shared * block_pages_;
}

std::int64_t PrefixCache::add(RequestId id, PromptPrefix prompt, std::int64_t blocks) {
  std::int64_t& held = held_[id];
  std::int64_t shared = 0;
  for (; held < blocks; ++held) shared += use(prompt[static_cast<std::size_t>(held)]) ? 1 : 0;
  return shared * block_pages_;
}

std::int64_t PrefixCache::drop(RequestId id, PromptPrefix prompt) {
  const auto held = held_.find(id);
  std::int64_t shared = 0;
  for (std::int64_t i = held->second; i-- > 0;) {
    const workloads::BlockId block = prompt[static_cast<std::size_t>(i)];
    Block& one = blocks_.at(block);
    if (--one.users > 0) {
      ++shared;
    } else {
      one.used = ++drops_;
      idle_.emplace(one.used, block);
    }
  }
  held_.erase(held);
  return shared * block_pages_;
}

void PrefixCache::keep_within(std::int64_t pages) {
  while (static_cast<std::int64_t>(idle_.size()) * block_pages_ > pages) {
    blocks_.erase(idle_.begin()->second);
    idle_.erase(idle_.begin());
  }
}

}  // namespace rehearse::sim
