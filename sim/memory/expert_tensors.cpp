#include "sim/memory/expert_tensors.hpp"

#include "workloads/expert_layer.hpp"

namespace rehearse::sim {
namespace {

constexpr double score_bytes = 4, choice_byte = 1;

}  // namespace

MegatronExperts::MegatronExperts(const workloads::Workload& workload, UnitTensors& made, int chunks)
    : MegatronAttention(workload, made), chunks_(chunks) {
  if (workload.model.moe) copies_ = workloads::copies_per_pair(workload);
}

bool MegatronExperts::whole_tokens() const { return w_.experts.dispatcher == workloads::Dispatcher::hierarchical && w_.parallel.ep > 1; }
bool MegatronExperts::gathers_tokens() const {
  return w_.experts.dispatcher == workloads::Dispatcher::allgather && w_.parallel.ep * w_.parallel.etp > 1;
}
double MegatronExperts::ffn() const { return static_cast<double>(w_.model.moe->ffn) / w_.parallel.etp * s_.element; }
double MegatronExperts::scores() const { return static_cast<double>(s_.spread_tokens) * w_.model.moe->experts * score_bytes; }
double MegatronExperts::shared_width() const {
  return static_cast<double>(w_.model.moe->shared) * w_.model.moe->ffn / static_cast<double>(s_.tp) * s_.element * tokens();
}
double MegatronExperts::own_pairs() const { return w_.model.moe->top_k * own_states() / chunks_; }
double MegatronExperts::all_tokens() const { return own_states() * w_.parallel.ep * w_.parallel.etp / chunks_; }
double MegatronExperts::latent_matrix() const {
  return static_cast<double>(s_.hidden) * w_.model.routed_width() * bytes_of(w_.precision.weights);
}

// The router works in fp32; scores, probabilities and the map of choices are read again in backward.
void MegatronExperts::route() {
  const int logits = take(scores());
  scores_ = take(scores());
  give(logits);
  probabilities_ = take(scores());
  map_ = take(scores() / score_bytes * choice_byte);
}

void MegatronExperts::shared_inside() {
  const int gathered = gather();
  shared_inner_ = take(gates() * shared_width());
  give(gathered);
  const double beside = beside_activation(w_.fusions.activation_kept);
  shared_silu_ = beside > 0 ? take(shared_width() * beside) : -1;
  shared_active_ = take(shared_width());
}

void MegatronExperts::shared_forward(bool kept) {
  if (w_.model.moe->shared == 0) return;
  shared_inside();
  shared_sum_ = spread(take(full()));
  if (!kept || drops(Module::shared_experts)) give_all({&shared_inner_, &shared_silu_, &shared_active_});
}

int MegatronExperts::shared_backward() {
  if (w_.model.moe->shared == 0) return -1;
  if (drops(Module::shared_experts)) shared_inside();
  const double matrix_bytes = shared_width() / tokens() / s_.element * static_cast<double>(s_.hidden) * bytes_of(w_.precision.weights);
  const bool as_experts = shared_width() / tokens() == ffn() && !narrows();  // placeholders are one for each shape
  const int gathered = gather();
  const int active = take(shared_width());
  hold(as_experts ? experts_fc2_placeholder : shared_fc2_placeholder, matrix_bytes);
  give(gathered);
  give_all({&shared_active_});
  const int inner = activation_backward(active, shared_width());
  give_all({&shared_silu_, &shared_inner_});
  const int again = gather_beside();
  const int part = spread_beside(take(full()));
  hold(as_experts ? experts_fc1_placeholder : shared_fc1_placeholder, gates() * matrix_bytes);
  give(again);
  give(inner);
  return part;
}

// What a rank's experts get of a piece. By the all-to-all from the copies of its own tokens that every rank has made.
void MegatronExperts::dispatch(Piece& piece) {
  if (w_.experts.pad_to != workloads::ExpertPlan::to_capacity) wait_for_gpu();  // for the numbers of tokens
  if (whole_tokens()) {
    piece.arrived = aside(take_rows(state() * copies_));
  } else if (gathers_tokens()) {
    piece.arrived = communicated(take(all_tokens()));
  } else if (w_.parallel.ep > 1) {
    communicated(permuted_);
    piece.arrived = communicated(take_rows(state() / w_.parallel.etp));
  }
}

// Sorted by expert, and the experts' output brought back into the order in which it is sent.
int MegatronExperts::compute(Piece& piece, bool kept) {
  int rows = exchanges_experts() ? communicated(take_rows(state())) : -1;
  if (sorts()) {
    piece.sorted = take_rows(state());
    give(rows);
  } else {
    piece.sorted = rows >= 0 ? rows : std::exchange(piece.arrived, -1);
  }
  hold_grouped_workspaces();
  piece.inner = take_rows(gates() * ffn());
  piece.silu = take_beside();
  piece.active = take_rows(ffn());
  if (!kept) give_all({&piece.inner, &piece.silu});
  const int output = take_rows(state());
  if (!kept || drops(Module::moe_act)) give_all({&piece.silu, &piece.active});
  int back = output;
  if (whole_tokens())
    back = take_rows(state() * copies_);
  else if (gathers_tokens())
    back = take(all_tokens());
  else if (sorts())
    back = take_rows(state());
  if (back != output) give(output);
  if (!kept) give_all({&piece.sorted});
  if (exchanges_experts()) {
    const int part = communicated(take_rows(state() / w_.parallel.etp));
    give(communicated(back));
    back = part;
  }
  return back;
}

// A piece's output, back at the rank that its tokens come from.
int MegatronExperts::combine(int sent) {
  const double own = own_states() / chunks_;
  int result = -1;
  if (whole_tokens()) {
    result = aside(take(own));
  } else if (gathers_tokens()) {
    result = communicated(take(own));
    communicated(sent);
  } else {
    const int back = w_.parallel.ep > 1 ? communicated(take(own_pairs())) : -1;
    if (back >= 0) communicated(sent);
    result = take(own);
    give(back);
  }
  give(sent);
  return result;
}

// The sum over a token's experts in the layer's width; the gradient of the projection's weights reads it.
int MegatronExperts::widen(int sum, bool kept) {
  if (!narrows()) return sum;
  const int whole = take(states());
  if (kept) combined_ = sum;
  if (!kept) give(sum);
  return whole;
}

// Of all pieces and the shared experts.
int MegatronExperts::join(const std::vector<int>& results, bool kept) {
  int sent = results.front();
  if (chunks_ > 1) {
    sent = take(own_states());
    for (const int result : results) give(result);
  }
  const int whole = widen(sent, kept);
  if (shared_sum_ < 0) return whole;
  const int sum = take(states());
  give(whole);
  give_all({&shared_sum_});
  return sum;
}

// The layer's function has names for what is sent both ways until it returns.
int MegatronExperts::forward_of_pieces(bool kept) {
  latent_ = narrows() ? take(own_states()) : -1;
  permuted_ = sends_pairs() ? take(chunks_ * own_pairs()) : -1;
  if (sends_pairs()) give_all({&latent_});
  std::vector<int> results;
  dispatch(pieces_.front());
  shared_forward(kept);
  for (std::size_t i = 0; i < pieces_.size(); ++i) {
    if (i + 1 < pieces_.size()) dispatch(pieces_[i + 1]);
    results.push_back(combine(compute(pieces_[i], kept && !again())));
    if (chunks_ > 1) give_all({&pieces_[i].arrived});
  }
  const int whole = join(results, kept);
  for (Piece& piece : pieces_) give_all({&piece.arrived});
  give_all({&permuted_, &latent_});
  return whole;
}

void MegatronExperts::experts_forward(bool kept) {
  pieces_.assign(static_cast<std::size_t>(chunks_), {});
  norm2_ = take(states());
  route();
  const int made = forward_of_pieces(kept);
  if (!kept) give_all({&scores_, &probabilities_, &map_});
  if (!kept || drops(Module::layernorm)) give_all({&norm2_});
  take_as(UnitTensors::output, states());
  give(made);
  mask2_ = dropped_out();
  if (!kept) give_all({&mask_, &mask2_, &middle_});
}

// The gradient of the sum over a token's experts.
int MegatronExperts::widen_backward() {
  if (!narrows()) return -1;
  const int gradient = take(own_states());
  hold(latent_fc2_placeholder, latent_matrix());
  give_all({&combined_});
  return gathers_tokens() ? communicated(gradient) : gradient;
}

// That of what the norm gave, from that of what was sent.
int MegatronExperts::narrow_backward(int gradient) {
  if (!narrows()) return gradient;
  const int of_norm = take(states());
  hold(latent_fc1_placeholder, latent_matrix());
  give(gradient);
  return of_norm;
}

// The gradient of a piece's output, as its experts read it.
int MegatronExperts::gradient_arrives(const Piece& piece) {
  int gradient = -1;
  if (whole_tokens()) {
    gradient = aside(take_rows(state() * copies_));
  } else {
    gradient = gathers_tokens() ? communicated(take(all_tokens())) : take(own_pairs());
  }
  if (&piece == &pieces_.front()) give_all({&of_combined_});
  if (sends_pairs()) {
    if (w_.parallel.ep > 1) {
      const int sent = communicated(std::exchange(gradient, communicated(take_rows(state() / w_.parallel.etp))));
      give(sent);
    }
    if (exchanges_experts()) {
      const int part = communicated(std::exchange(gradient, communicated(take_rows(state()))));
      give(part);
    }
  }
  if (sorts()) {
    const int unsorted = std::exchange(gradient, take_rows(state()));
    give(unsorted);
  }
  return gradient;
}

// Of a product in groups: its input's gradient; all of a rank's experts have their weights in one shape.
int MegatronExperts::compute_backward(Piece& piece, int gradient) {
  const double matrix_bytes = ffn() / s_.element * w_.model.routed_width() * bytes_of(w_.precision.weights);
  if (drops(Module::moe_act) && piece.active < 0) {
    piece.silu = take_beside();
    piece.active = take_rows(ffn());
  }
  const int active = take_rows(ffn());
  hold(experts_fc2_placeholder, matrix_bytes);
  give(gradient);
  give_all({&piece.active});
  const int weighted = take_rows(ffn());  // the activation once more, for the gradient of its weight
  const int inner = take_rows(gates() * ffn());
  give(weighted);
  give(active);
  give_all({&piece.inner, &piece.silu});
  const int read = take_rows(state());
  hold(experts_fc1_placeholder, gates() * matrix_bytes);
  give(inner);
  give_all({&piece.sorted});
  return read;
}

// Back at the rank that the tokens come from.
int MegatronExperts::gradient_returns(int gradient) {
  if (whole_tokens()) {
    const int unsorted = take_rows(state() * copies_);
    give(gradient);
    const int own = aside(take(own_states() / chunks_));
    give(unsorted);
    return own;
  }
  if (gathers_tokens()) {
    const int unsorted = communicated(take(all_tokens()));
    give(gradient);
    const int own = communicated(take(own_states() / chunks_));
    give(unsorted);
    return own;
  }
  if (exchanges_experts()) {
    const int whole = communicated(std::exchange(gradient, communicated(take_rows(state() / w_.parallel.etp))));
    give(whole);
  }
  if (w_.parallel.ep > 1) {
    const int sent = communicated(std::exchange(gradient, communicated(take(own_pairs()))));
    give(sent);
  }
  return gradient;
}

// The gradient of its tokens. The shared experts' backward runs beside the exchange of the last piece, the first one.
int MegatronExperts::backward_of_piece(Piece& piece, int& of_shared) {
  if (again()) {
    dispatch(piece);
    give(compute(piece, true));
    give_all({&piece.arrived});
  }
  int gradient = compute_backward(piece, gradient_arrives(piece));
  if (sends_pairs() && sorts()) {
    const int sorted = std::exchange(gradient, take_rows(state()));
    give(sorted);
  }
  if (&piece == &pieces_.front()) of_shared = shared_backward();
  return gradient_returns(gradient);
}

void MegatronExperts::route_backward() {
  const int of_probabilities = take(scores()), of_scores = take(scores());
  give(of_probabilities);
  const int of_router = take(states());
  give(of_scores);
  give(of_router);
  give_all({&scores_, &probabilities_, &map_});
}

void MegatronExperts::experts_backward() {
  give_all({&mask2_});
  if (drops(Module::layernorm)) norm2_ = take(states());
  if (again()) permuted_ = sends_pairs() ? take(chunks_ * own_pairs()) : -1;
  of_combined_ = widen_backward();
  int of_sent = -1, of_shared = -1;
  for (std::size_t i = pieces_.size(); i-- > 0;) {
    const int gradient = backward_of_piece(pieces_[i], of_shared);
    if (!sends_pairs() && chunks_ == 1) {
      of_sent = gradient;
    } else {
      if (of_sent < 0) of_sent = take(own_states());
      give(gradient);
    }
  }
  const int of_norm = narrow_backward(of_sent);
  give_all({&permuted_});
  give(of_shared);
  route_backward();
  const int middle = take(states());
  give(of_norm);
  give_all({&norm2_, &middle_});
  meet_residual(middle);
}

}  // namespace rehearse::sim
