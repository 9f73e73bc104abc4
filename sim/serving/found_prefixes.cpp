#include "sim/serving/found_prefixes.hpp"

#include <algorithm>

#include "sim/serving/prefix_cache.hpp"
#include "sim/serving/router.hpp"

namespace rehearse::sim {
namespace {

struct Cache {
  PrefixCache blocks;
  std::int64_t pages;
  int page;
  bool keeps;
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

}  // namespace

bool keeps_prefixes(const ServingJob& job) { return std::ranges::any_of(job.pools, &Pool::prefix_cache); }

LoadMoments with_found(const LoadMoments& load, const ServingJob& job, const Deployment& deployment, bool of_prompts,
                       const std::vector<double>& taken) {
  const workloads::PromptBlocks& blocks = *job.load.blocks;
  std::vector<Cache> caches;
  for (std::size_t i = 0; i < job.pools.size(); ++i) {
    const InstanceRules& rules = deployment.pools[i].rules;
    if ((rules.role != Role::decode) != of_prompts) continue;
    const auto pages = static_cast<std::int64_t>((1 - taken[i]) * static_cast<double>(rules.pages));
    for (int instance = 0; instance < job.pools[i].instances; ++instance)
      caches.push_back({PrefixCache(blocks.tokens() / rules.page), pages, rules.page, rules.blocks != nullptr});
  }
  if (RouterRegistry::get(of_prompts ? job.prompt_router : job.decode_router).finds_prefixes()) {
    std::erase_if(caches, [](const Cache& cache) { return !cache.keeps; });  // at least one does
    for (std::size_t i = 1; i < caches.size(); ++i) caches.front().pages += caches[i].pages;
    caches.resize(1, caches.front());
  }
  LoadMoments out = load;
  double computed = 0, squares = 0, pairs = 0, found_in_all = 0, count = 0;
  for (std::size_t i = 0; i < load.inputs_in_order.size(); ++i) {
    const double tokens = load.inputs_in_order[i];
    Cache& cache = caches[i % caches.size()];
    const double found =
        cache.keeps ? pass_through(cache, static_cast<RequestId>(i), blocks.of(i), static_cast<int>(tokens), blocks.tokens()) : 0;
    if (i < static_cast<std::size_t>(job.load.warmup)) continue;
    ++count;
    computed += tokens - found;
    squares += (tokens - found) * (tokens - found);
    pairs += tokens * tokens - found * found;
    found_in_all += found;
  }
  out.found = found_in_all / count;
  out.input_variation = squares * count / (computed * computed) - 1;
  out.pair_factor = pairs / count / (out.input * out.input - out.found * out.found);
  return out;
}

}  // namespace rehearse::sim
