#include "sim/serving/exposed_hand_over.hpp"

#include <algorithm>

namespace rehearse::sim {

// The links serve pieces one after another: they never rest while something is left, so that the last is there when it would be if they
// shared. Pieces that are computed before the other engine knows of the request leave together then.
ExposedHandOver exposed_hand_over(const PoolFormula& prompts, const NetworkTransfers& transfers, double tokens, double request_s) {
  if (transfers.early(static_cast<std::int64_t>(tokens)) == 0) return {request_s, transfers.alone_s(tokens)};
  struct Leaving {
    double at_s, tokens;  // all that have left by then
  };
  std::vector<Leaving> pieces;
  double computed = 0, now_s = 0, asked_s = 0;
  for (const PoolFormula::Chunk& chunk : prompts.chunks(tokens, 0)) {
    now_s += chunk.seconds;
    computed += chunk.tokens;
    const double ready = computed < tokens ? static_cast<double>(transfers.early(static_cast<std::int64_t>(computed))) : tokens;
    if (ready == 0) continue;
    if (pieces.empty()) asked_s = now_s + request_s;
    if (pieces.empty() || pieces.back().at_s < now_s) pieces.push_back({std::max(now_s, asked_s), ready});
    pieces.back().tokens = ready;
  }
  double sent = 0, links_s = 0, there_s = 0;
  for (const Leaving& piece : pieces) {
    const NetworkTransfers::Alone times = transfers.alone(piece.tokens - sent);
    links_s = std::max(links_s, piece.at_s + times.before_s) + times.links_s;
    there_s = std::max(there_s, links_s + times.after_s);
    sent = piece.tokens;
  }
  const double begins_s = pieces.back().at_s;
  return {begins_s - now_s, there_s - begins_s};
}

}  // namespace rehearse::sim
