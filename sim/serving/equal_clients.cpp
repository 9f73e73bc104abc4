#include "sim/serving/equal_clients.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace rehearse::sim {
namespace {

// The prompts of all clients that fit, in full passes one after the other: a wave is what one of them ends. `decode_s`: a pass between two
// trains of them, with everybody.
struct Train {
  std::vector<double> prompts, pass_s;
  double decode_s = 0;
};

Train train_of(const PoolFormula& pool, const LoadMoments& load, double batch, double beside) {
  Train out;
  out.decode_s = pool.decode_s(batch);
  const double wave = pool.prompts_of_a_pass(std::max(1.0, batch), beside);
  for (double left = batch; left > 1e-9; left -= wave) {
    const double prompts = std::min(left, wave);
    out.prompts.push_back(prompts);
    out.pass_s.push_back(load.input > 0 && wave <= 1 ? prompts * pool.prompt_s(beside).seconds : pool.together_s(prompts, beside));
  }
  return out;
}

// When every wave's answers end, its new prompts are computed and its first token comes, from the end of the first wave on.
struct Round {
  std::vector<double> end_s, start_s, first_s;
  double seconds = 0;  // of a whole one
};

// Where prompts run beside decoding, waves end a pass apart as they began, and every pass of the train ends the answers of another one
// that has not ended before; where they run alone, all have as many tokens and end together. The first wave waits for the end of a pass.
Round round_of(const Train& train, bool mixes, double steps, double request_s) {
  const std::size_t waves = train.pass_s.size();
  Round out;
  const double idle_from = mixes ? static_cast<double>(waves - 1) * train.decode_s : 0;
  double at = request_s >= idle_from ? request_s : std::ceil(request_s / train.decode_s) * train.decode_s;
  const auto before = static_cast<std::size_t>(std::ceil(request_s / train.decode_s));  // passes of decoding until then
  for (std::size_t j = 0; j < waves; ++j) {
    double end_s = !mixes ? 0 : static_cast<double>(std::min(j, before)) * train.decode_s;
    if (mixes && j > before) end_s = out.first_s[j - before - 1];
    out.end_s.push_back(end_s);
    at = std::max(at, end_s + request_s);
    out.start_s.push_back(at);
    at += train.pass_s[j];
    out.first_s.push_back(at);
  }
  const double between = mixes ? steps - static_cast<double>(waves - 1) : steps;
  out.seconds = at + std::max(0.0, between) * train.decode_s;
  return out;
}

}  // namespace

PoolState equal_clients(const PoolFormula& pool, const LoadMoments& load, double clients, double request_s, double first_share) {
  PoolState out;
  out.batch = std::min(clients, pool.most_sequences());
  const bool queue = clients > out.batch;  // somebody waits, and takes the place of who ends at once
  const double steps = std::max(0.0, load.output - 1);
  const Train alone = train_of(pool, load, out.batch, 0);
  const double beside = pool.mixes() ? std::max(0.0, out.batch - alone.prompts.front()) : 0;
  const Train train = train_of(pool, load, out.batch, beside);
  // Beside waves that go on an engine that works ahead takes who comes a pass later.
  const double late_s = pool.pool().rules.ahead && pool.mixes() && train.pass_s.size() > 1 ? train.decode_s : 0;
  const Round round = round_of(train, pool.mixes(), steps, queue ? 0 : request_s + late_s);
  for (std::size_t j = 0; j < train.pass_s.size(); ++j) {
    const double share = train.prompts[j] / out.batch;
    const double came_s = round.end_s[j] + (queue ? 0 : request_s);
    out.queue_s += share * (1 - first_share) * (round.start_s[j] - came_s);
    out.prefill_s += share * (1 - first_share) * train.pass_s[j];
    out.tpot_s += share * (round.seconds + round.end_s[j] - round.first_s[j]);
  }
  double began_s =
      0;  // the clients' first requests come at once, when nothing decodes yet: in fewer waves, since more of them fit into a pass
  for (std::size_t j = 0; j < alone.pass_s.size(); ++j) {
    const double share = alone.prompts[j] / out.batch;
    out.queue_s += share * first_share * began_s;
    out.prefill_s += share * first_share * alone.pass_s[j];
    began_s += alone.pass_s[j];
  }
  out.tpot_s = steps > 0 ? out.tpot_s / steps : 0;
  out.requests_per_s = out.batch / round.seconds;
  if (queue) out.queue_s += (clients - out.batch) / out.requests_per_s;
  out.ttft_s = out.queue_s + out.prefill_s;
  out.busy = 1;
  return out;
}

}  // namespace rehearse::sim
