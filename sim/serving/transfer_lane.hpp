// What it takes to hand a cache over from the instances of one pool to those of another: who sends what to whom, what is made to fit, and
// how much of a cache a piece of it is.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "sim/serving/kv_alignment.hpp"
#include "sim/serving/serving_job.hpp"
#include "sim/serving/transfers.hpp"
#include "workloads/serving/kv_layout.hpp"

namespace rehearse::sim {

struct TransferLane {
  std::size_t from_pool = 0, to_pool = 0;  // among the job's
  std::size_t from_part = 0, to_part = 0;
  int layers = 1;  // of the model
  int page = 1;    // of the sender; whole pages are sent
  std::vector<workloads::KvPair> pairs;
  std::vector<KvAlignmentWork> alignment;
  double sender_s_per_token = 0, receiver_s_per_token = 0;  // of kernels, before and behind the flows
  double pages_s_per_token = 0;                             // of the receiver, that asks for pages before anything moves
  double engine_s = 0;                                      // before anything moves: the engines, the first piece to the host and from it
  double wire_share = 1;                                    // bytes on the wire of a sender's byte, by its number format
  double line_share = 1;                                    // of the line rate that engines reach
  std::string refused;                                      // what one of the engines does not make fit; "": nothing
  bool staged = false;                                      // through the memory of both hosts

  [[nodiscard]] double aligning_s_per_token() const { return sender_s_per_token + receiver_s_per_token; }
  [[nodiscard]] bool one_part() const { return from_part == to_part; }
  [[nodiscard]] double in_pages(double tokens) const;
  // Bytes on the wire of a piece between two ranks: its tokens', and the states of mixers, which leave with a whole cache.
  [[nodiscard]] double piece_bytes(const workloads::KvPair& pair, const CacheFront& sent, const CacheFront& ready) const {
    const double tokens = piece_tokens(sent, ready, pair.first_layer, pair.last_layer);
    return tokens > 0 ? pair.bytes_per_token * tokens * wire_share + pair.state_bytes : 0;
  }
  // Tokens of a piece in the layers [first, last), as if each of them had as many.
  [[nodiscard]] double piece_tokens(const CacheFront& sent, const CacheFront& ready, int first, int last) const;
  [[nodiscard]] double start_s(double tokens, double latency_s) const {
    return engine_s + latency_s + (sender_s_per_token + pages_s_per_token) * tokens;
  }

 private:
  [[nodiscard]] double tokens_of(const CacheFront& front, int first, int last) const;
};

// The pools by their places in the job.
[[nodiscard]] TransferLane transfer_lane(const ServingJob& job, std::size_t from_pool, std::size_t to_pool);
// The first one that is refused.
[[nodiscard]] std::optional<TransferLane> hand_over_refused(const ServingJob& job);

}  // namespace rehearse::sim
