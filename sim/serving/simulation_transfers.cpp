// Caches on their way between the sides: in one piece behind the prompt, or in pieces as its chunks are computed (docs/serving.md, "The
// hand-over").
#include <algorithm>

#include "sim/serving/simulation_state.hpp"

namespace rehearse::sim {
namespace {

// Of what is computed that which is not there already.
CacheFront beyond(std::int64_t there, const CacheFront& computed) {
  if (computed.tokens >= there) return computed;
  return computed.layers > 0 && computed.ahead > there ? CacheFront{there, computed.layers, computed.ahead} : CacheFront{there};
}

}  // namespace

// The other engine has the request.
void ServiceSimulation::ask(RequestId id) {
  Way& way = ways_[id];
  way.asked = true;
  way.reserved || setup_.transfers->reserves_first() ? offer(id) : want_room(id);
}

// So many tokens of its prompt are computed, and more come. An answer that ends with the prompt needs no cache elsewhere.
void ServiceSimulation::offer_early(RequestId id, const CacheFront& ready) {
  const RequestState& request = requests_[id];
  if (setup_.transfers->prefill_answers_first() && request.generated + 1 == request.tokens.output) return;
  ways_[id].early = ready;
  if (ready > CacheFront{}) offer(id);
}

// The layers of a model take equal shares of a pass (assumption); the last is computed when the pass ends.
void ServiceSimulation::await_layer(std::size_t instance) {
  if (!apart() || instance >= sides_.back().first || (is_layered(instance) && layers_[instance].left > 0)) return;
  const int layers = setup_.transfers->layers(), next = layer_[instance] + 1;
  const PassRun pass = instances_[instance]->under_way();
  if (next >= layers || pass.prompts == 0) return;
  machine_.after(std::max(0.0, pass.start_s + pass.seconds * next / layers - now()),
                 token_of(ServiceEvent::layer_end, instance, generation_[instance]));
}

void ServiceSimulation::end_layer(std::size_t instance) {
  const int layer = ++layer_[instance];
  for (const Instance::Part& part : instances_[instance]->in_pass()) {
    const std::int64_t whole = setup_.transfers->early(instance, part.before),
                       ahead = part.after == part.all ? part.all : setup_.transfers->early(instance, part.after);
    offer_early(part.id, ahead > whole ? CacheFront{whole, layer, ahead} : CacheFront{whole});
  }
  await_layer(instance);
}

// Something of its cache can leave; what finds no room yet leaves when there is some.
void ServiceSimulation::offer(RequestId id) {
  Way& way = ways_[id];
  if (!way.asking) {
    way.asking = true;
    machine_.after(sides_.back().request_s, token_of(ServiceEvent::asked, id, way.attempt));
  } else if (way.asked && way.reserved) {
    send(id);
  } else if (way.asked && way.cached && setup_.transfers->reserves_first()) {
    drop_cache(id);
    try_decode_room();
  }
}

// What is computed and has not left does so. The hand-over has begun for good when the whole prompt is computed.
void ServiceSimulation::send(RequestId id) {
  RequestState& request = requests_[id];
  Way& way = ways_[id];
  const CacheFront sent = std::max(way.sent, CacheFront{request.there}),
                   ready = way.cached ? CacheFront{request.prompt} : beyond(request.there, way.early);
  if (ready <= sent) return;
  if (way.sent == CacheFront{}) request.transfer_bytes = 0;
  if (way.cached) {
    request.enter(Stage::transferring, now());
    way.began_s = now();
    if (!setup_.faults.empty()) machine_.after(setup_.timeout_s, token_of(ServiceEvent::timeout, id, way.attempt));
  }
  if (free_pieces_.empty()) {
    free_pieces_.push_back(pieces_.size());
    pieces_.emplace_back();
  }
  const std::size_t place = free_pieces_.back();
  free_pieces_.pop_back();
  Piece& piece = pieces_[place];
  piece.request = id;
  piece.sent = sent;
  piece.ready = ready;
  way.sent = ready;
  way.pieces.push_back(place);
  if (record_) record_->hand_over_begins(place, id, way.from, way.to, now());
  machine_.after(hand_over_of(piece).before_s, token_of(ServiceEvent::transfer_start, place, piece.generation));
}

HandOver ServiceSimulation::hand_over_of(const Piece& piece) const {
  const Way& way = ways_[piece.request];
  return setup_.transfers->hand_over(way.from - sides_.front().first, way.to - sides_.back().first, piece.request, piece.sent, piece.ready);
}

void ServiceSimulation::start_flows(std::size_t place) {
  Piece& piece = pieces_[place];
  const HandOver hand_over = hand_over_of(piece);
  requests_[piece.request].transfer_bytes += hand_over.bytes;
  piece.flows = static_cast<int>(hand_over.flows.size());
  piece.after_s = hand_over.after_s;
  piece.bytes = hand_over.bytes;
  piece.aligning_s = hand_over.aligning_s;
  piece.links.clear();
  for (const HandOver::Flow& flow : hand_over.flows) {
    if (!setup_.faults.empty()) piece.links.insert(piece.links.end(), flow.links.begin(), flow.links.end());
  }
  if (record_) record_->flows_begin(place, now(), hand_over);
  for (const HandOver::Flow& flow : hand_over.flows)
    machine_.transfer(host_, host_, flow.links, flow.bytes, token_of(ServiceEvent::flow_end, place, piece.generation));
  if (piece.flows == 0) machine_.after(piece.after_s, token_of(ServiceEvent::transfer_end, place, piece.generation));
}

void ServiceSimulation::end_flow(std::size_t place) {
  Piece& piece = pieces_[place];
  if (--piece.flows > 0) return;
  piece.links.clear();
  if (record_) record_->flows_end(place, now());
  machine_.after(piece.after_s, token_of(ServiceEvent::transfer_end, place, piece.generation));
}

// From its beginning, over the way that it has now.
void ServiceSimulation::send_anew(std::size_t place) {
  Piece& piece = pieces_[place];
  const Way& way = ways_[piece.request];
  machine_.halt([&](Token token) { return event_of(token) == ServiceEvent::flow_end && index_of(token) == place; });
  requests_[piece.request].transfer_bytes -= piece.bytes;
  piece.links.clear();
  piece.generation = (piece.generation + 1) % generations;
  if (record_) {
    record_->hand_over_ends(place, now(), false);
    record_->hand_over_begins(place, piece.request, way.from, way.to, now());
  }
  machine_.after(hand_over_of(piece).before_s, token_of(ServiceEvent::transfer_start, place, piece.generation));
}

void ServiceSimulation::free_piece(std::size_t place) {
  pieces_[place].links.clear();
  pieces_[place].generation = (pieces_[place].generation + 1) % generations;
  free_pieces_.push_back(place);
}

void ServiceSimulation::end_piece(std::size_t place) {
  const RequestId id = pieces_[place].request;
  Way& way = ways_[id];
  way.aligning_s = pieces_[place].aligning_s;
  if (record_) record_->hand_over_ends(place, now(), true);
  free_piece(place);
  std::erase(way.pieces, place);
  if (way.pieces.empty() && way.sent.tokens == requests_[id].prompt) end_transfer(id);
}

void ServiceSimulation::end_transfer(RequestId id) {
  Way& way = ways_[id];
  forget_way(id);
  way.cached = way.reserved = false;
  RequestState& request = requests_[id];
  const double aligning_s = std::min(way.aligning_s, now() - request.since_s);
  request.enter(Stage::decode_queued, now());
  request.spent_s[static_cast<std::size_t>(Stage::transferring)] -= aligning_s;
  request.spent_s[static_cast<std::size_t>(Stage::aligning)] += aligning_s;
  instances_[way.from]->release(id);
  touched_.push_back(way.from);
  touched_.push_back(way.to);
  if (instances_[way.to]->adopt(id, now())) try_decode_room();
}

// Nothing of it moves any more, and all of it is to be sent again.
void ServiceSimulation::stop_pieces(RequestId id) {
  Way& way = ways_[id];
  if (!way.pieces.empty())
    machine_.halt([&](Token token) { return event_of(token) == ServiceEvent::flow_end && pieces_[index_of(token)].request == id; });
  for (const std::size_t place : way.pieces) {
    if (record_) record_->hand_over_ends(place, now(), false);
    free_piece(place);
  }
  way.pieces.clear();
  way.sent = {};
  way.attempt = (way.attempt + 1) % generations;
}

// Its next prompt is offered anew.
void ServiceSimulation::forget_way(RequestId id) {
  Way& way = ways_[id];
  stop_pieces(id);
  way.early = {};
  way.asking = way.asked = false;
}

// Its prompt is not whole and will be computed elsewhere. Room that was taken before stays; other room is given back, since a prompt that
// queues must not keep it from caches that keep others' pages.
void ServiceSimulation::recall(RequestId id) {
  Way& way = ways_[id];
  if (!way.asking) return;
  if (way.asked && !way.reserved) wanting_room_.erase(id);
  if (!setup_.transfers->reserves_first()) give_room_back(id);
}

}  // namespace rehearse::sim
