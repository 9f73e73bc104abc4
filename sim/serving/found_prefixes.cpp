#include "sim/serving/found_prefixes.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "sim/serving/prefix_cache.hpp"
#include "sim/serving/router.hpp"

namespace rehearse::sim {
namespace {

struct Cache {
  PrefixCache blocks;
  std::int64_t pages;
  int page;
  bool keeps;
  int longest;  // prompt that goes there
};

// Tokens of a prompt that are found, and kept from now on.
double pass_through(Cache& cache, RequestId id, PromptPrefix prompt, int tokens, int block) {
  const std::int64_t found = cache.blocks.found(prompt) * block, most = std::int64_t{tokens - 1} / cache.page * cache.page;
  static_cast<void>(cache.blocks.hold(id, prompt));
  cache.blocks.keep_within(std::max<std::int64_t>(0, cache.pages - (tokens - 1) / cache.page - 1));
  static_cast<void>(cache.blocks.add(id, prompt, static_cast<std::int64_t>(prompt.size())));
  static_cast<void>(cache.blocks.drop(id, prompt));
  return static_cast<double>(std::min(found, most));
}

// Those of a side, by instance; behind the router `prefix` one.
std::vector<Cache> caches_of(const ServingJob& job, const Deployment& deployment, bool of_prompts, const std::vector<double>& taken) {
  const RequestRouter& router = RouterRegistry::get(of_prompts ? job.prompt_router : job.decode_router);
  const int block = job.load.blocks->tokens();
  std::vector<Cache> caches;
  for (std::size_t i = 0; i < job.pools.size(); ++i) {
    const InstanceRules& rules = deployment.pools[i].rules;
    if ((rules.role != Role::decode) != of_prompts) continue;
    const auto pages = static_cast<std::int64_t>((1 - taken[i]) * static_cast<double>(rules.pages));
    const int longest = router.goes_by() == GoesBy::lengths ? job.pools[i].longest_prompt : 0;
    for (int instance = 0; instance < job.pools[i].instances; ++instance)
      caches.push_back(
          {PrefixCache(block / rules.page), pages, rules.page, rules.blocks != nullptr, longest > 0 ? longest : LengthRange{}.up_to});
  }
  if (!router.finds_prefixes()) return caches;
  std::erase_if(caches, [](const Cache& cache) { return !cache.keeps; });  // at least one does
  for (std::size_t i = 1; i < caches.size(); ++i) caches.front().pages += caches[i].pages;
  caches.resize(1, caches.front());
  return caches;
}

}  // namespace

bool keeps_prefixes(const ServingJob& job) { return std::ranges::any_of(job.pools, &Pool::prefix_cache); }

LoadMoments with_found(const LoadMoments& load, const ServingJob& job, const Deployment& deployment, bool of_prompts,
                       const std::vector<double>& taken) {
  const workloads::PromptBlocks& blocks = *job.load.blocks;
  std::vector<Cache> caches = caches_of(job, deployment, of_prompts, taken);
  struct Turns {
    std::vector<Cache*> caches;
    std::size_t next = 0;
  };
  std::map<int, Turns> turns;  // by the longest prompt
  for (Cache& cache : caches) turns[cache.longest].caches.push_back(&cache);
  std::vector<double> found;
  for (std::size_t i = 0; i < load.requests->size(); ++i) {
    const int tokens = (*load.requests)[i].input;
    Turns& those = turns.lower_bound(tokens)->second;
    Cache& cache = *those.caches[those.next++ % those.caches.size()];
    found.push_back(cache.keeps ? pass_through(cache, static_cast<RequestId>(i), blocks.of(i), tokens, blocks.tokens()) : 0);
  }
  LoadMoments out = load;
  put_found(out, std::move(found), static_cast<std::size_t>(job.load.warmup));
  return out;
}

}  // namespace rehearse::sim
