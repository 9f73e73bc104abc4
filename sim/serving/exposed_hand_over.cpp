#include "sim/serving/exposed_hand_over.hpp"

#include <algorithm>
#include <cmath>

namespace rehearse::sim {

// The links serve pieces one after another: they never rest while something is left, so that the last is there when it would be if they
// shared. Pieces that are computed before the other engine knows of the request leave together then.
ExposedHandOver exposed_hand_over(const PoolFormula& prompts, const NetworkTransfers& transfers, double tokens, double request_s,
                                  std::size_t lane, double there) {
  const std::int64_t page = prompts.pool().rules.page;
  const CacheFront whole{static_cast<std::int64_t>(std::ceil(tokens))};
  if (transfers.whole() || (transfers.layers() == 1 && tokens < static_cast<double>(page)))
    return {request_s, transfers.alone_s(tokens, lane, there), transfers.aligning_s({static_cast<std::int64_t>(there)}, whole, lane)};
  const auto early = [&](double computed) { return static_cast<std::int64_t>(computed) / page * page; };
  struct Leaving {
    double at_s;
    CacheFront ready;  // all that have left by then
  };
  std::vector<Leaving> pieces;
  double computed = prompts.found(tokens), now_s = 0, asked_s = 0;
  const auto ready_at = [&](double at_s, const CacheFront& ready) {
    if (ready <= CacheFront{static_cast<std::int64_t>(there)}) return;
    if (pieces.empty()) asked_s = at_s + request_s;
    if (pieces.empty() || pieces.back().at_s < at_s) pieces.push_back({std::max(at_s, asked_s), ready});
    pieces.back().ready = ready;
  };
  const int layers = transfers.layers();
  for (const PoolFormula::Chunk& chunk : prompts.chunks(tokens, 0)) {
    const std::int64_t before = early(computed);
    computed += chunk.tokens;
    const bool last = computed >= tokens;
    const std::int64_t after = last ? static_cast<std::int64_t>(std::ceil(tokens)) : early(computed);
    for (int layer = 1; layer < layers && after > before; ++layer) ready_at(now_s + chunk.seconds * layer / layers, {before, layer, after});
    now_s += chunk.seconds;
    ready_at(now_s, {after});
  }
  CacheFront sent{static_cast<std::int64_t>(there)};
  double links_s = 0, there_s = 0, aligning_s = 0;
  for (const Leaving& piece : pieces) {
    const NetworkTransfers::Alone times = transfers.alone(sent, piece.ready, lane);
    links_s = std::max(links_s, piece.at_s + times.before_s) + times.links_s;
    there_s = std::max(there_s, links_s + times.after_s);
    aligning_s = transfers.aligning_s(sent, piece.ready, lane);
    sent = piece.ready;
  }
  const double begins_s = pieces.back().at_s;
  return {begins_s - now_s, there_s - begins_s, std::min(aligning_s, there_s - begins_s)};
}

}  // namespace rehearse::sim
