// Caches on their way between the sides: in one piece behind the prompt, or in pieces as its chunks are computed (docs/serving.md, "The
// hand-over").
#include <algorithm>

#include "sim/serving/simulation_state.hpp"

namespace rehearse::sim {

// The other engine has the request.
void ServiceSimulation::ask(RequestId id) {
  Way& way = ways_[id];
  way.asked = true;
  way.reserved || setup_.transfers->reserves_first() ? offer(id) : want_room(id);
}

// So many tokens of its prompt are computed, and more come. An answer that ends with the prompt needs no cache elsewhere.
void ServiceSimulation::offer_early(RequestId id, std::int64_t tokens) {
  const RequestState& request = requests_[id];
  if (setup_.transfers->prefill_answers_first() && request.generated + 1 == request.tokens.output) return;
  ways_[id].early = setup_.transfers->early(tokens);
  if (ways_[id].early > 0) offer(id);
}

// Something of its cache can leave; what finds no room yet leaves when there is some.
void ServiceSimulation::offer(RequestId id) {
  Way& way = ways_[id];
  if (!way.asking) {
    way.asking = true;
    machine_.after(setup_.pools.back().request_s, token_of(ServiceEvent::asked, id, way.attempt));
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
  const std::int64_t ready = way.cached ? request.prompt : way.early;
  if (ready <= way.sent) return;
  if (way.sent == 0) request.transfer_bytes = 0;
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
  piece.tokens = static_cast<double>(ready - way.sent);
  way.sent = ready;
  way.pieces.push_back(place);
  if (record_) record_->hand_over_begins(place, id, way.from, way.to, now());
  machine_.after(hand_over_of(piece).before_s, token_of(ServiceEvent::transfer_start, place, piece.generation));
}

HandOver ServiceSimulation::hand_over_of(const Piece& piece) const {
  const Way& way = ways_[piece.request];
  return setup_.transfers->hand_over(way.from - pools_.front().first, way.to - pools_.back().first, piece.request, piece.tokens);
}

void ServiceSimulation::start_flows(std::size_t place) {
  Piece& piece = pieces_[place];
  const HandOver hand_over = hand_over_of(piece);
  requests_[piece.request].transfer_bytes += hand_over.bytes;
  piece.flows = static_cast<int>(hand_over.flows.size());
  piece.after_s = hand_over.after_s;
  if (record_) record_->flows_begin(place, now(), hand_over);
  for (const HandOver::Flow& flow : hand_over.flows)
    machine_.transfer(host_, host_, flow.links, flow.bytes, token_of(ServiceEvent::flow_end, place, piece.generation));
  if (piece.flows == 0) machine_.after(piece.after_s, token_of(ServiceEvent::transfer_end, place, piece.generation));
}

void ServiceSimulation::end_flow(std::size_t place) {
  Piece& piece = pieces_[place];
  if (--piece.flows > 0) return;
  if (record_) record_->flows_end(place, now());
  machine_.after(piece.after_s, token_of(ServiceEvent::transfer_end, place, piece.generation));
}

void ServiceSimulation::free_piece(std::size_t place) {
  pieces_[place].generation = (pieces_[place].generation + 1) % generations;
  free_pieces_.push_back(place);
}

void ServiceSimulation::end_piece(std::size_t place) {
  const RequestId id = pieces_[place].request;
  Way& way = ways_[id];
  if (record_) record_->hand_over_ends(place, now(), true);
  free_piece(place);
  std::erase(way.pieces, place);
  if (way.pieces.empty() && way.sent == requests_[id].prompt) end_transfer(id);
}

void ServiceSimulation::end_transfer(RequestId id) {
  Way& way = ways_[id];
  forget_way(id);
  way.cached = way.reserved = false;
  requests_[id].enter(Stage::decode_queued, now());
  instances_[way.from]->release(id);
  instances_[way.to]->adopt(id);
  touched_.push_back(way.from);
  touched_.push_back(way.to);
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
  way.sent = 0;
  way.attempt = (way.attempt + 1) % generations;
}

// Its next prompt is offered anew.
void ServiceSimulation::forget_way(RequestId id) {
  Way& way = ways_[id];
  stop_pieces(id);
  way.early = 0;
  way.asking = way.asked = false;
}

// Its prompt is not whole and will be computed elsewhere. Room that was taken before stays; other room is given back, since a prompt that
// queues must not keep it from caches that keep others' pages.
void ServiceSimulation::recall(RequestId id) {
  Way& way = ways_[id];
  if (!way.asking) return;
  if (way.asked && !way.reserved) std::erase(wanting_room_, id);
  if (way.reserved && !setup_.transfers->reserves_first()) {
    way.reserved = false;
    instances_[way.to]->cancel(id);
    touched_.push_back(way.to);
  }
}

}  // namespace rehearse::sim
