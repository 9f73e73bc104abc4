// The simulation of a deployment at work: what the events of the machine do. Its parts: requests on their way (simulation.cpp), their
// caches between the sides (simulation_transfers.cpp), and what failures do to them (simulation_failures.cpp).
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/engine/machine.hpp"
#include "sim/serving/room_lines.hpp"
#include "sim/serving/router.hpp"
#include "sim/serving/simulation.hpp"

namespace rehearse::sim {

// What a token of the machine stands for: kind, whose, and for the end of a pass which of its ends is meant, since a run can be cut;
// between the sides which attempt, since a hand-over can be given up, and which piece of those that had the same place.
enum class ServiceEvent : std::uint64_t {
  arrival,
  placed,
  asked,
  pass_end,
  transfer_start,
  flow_end,
  transfer_end,
  timeout,
  fault,
  over,
  layer_end,
  layer_computed,
  layer_sent,
  loaded
};
inline constexpr unsigned kind_bits = 4, index_bits = 32;
inline Token token_of(ServiceEvent event, std::uint64_t index, std::uint64_t generation = 0) {
  return static_cast<std::uint64_t>(event) | index << kind_bits | generation << (kind_bits + index_bits);
}
inline ServiceEvent event_of(Token token) { return static_cast<ServiceEvent>(token & ((1U << kind_bits) - 1)); }
inline std::uint64_t index_of(Token token) { return token >> kind_bits & ((std::uint64_t{1} << index_bits) - 1); }
inline constexpr std::uint64_t generations = std::uint64_t{1} << (64 - kind_bits - index_bits);
inline std::uint64_t generation_of(Token token) { return token >> (kind_bits + index_bits); }

// The instances of all pools of a side.
struct ServiceSide {
  std::size_t first = 0;  // of its instances among all
  double request_s = 0;   // until a request is in the queue of one; of the slowest engine, which the front waits for
  std::vector<std::unique_ptr<Instance>> instances;
  std::vector<Instance*> up;            // those that work, for the router
  std::vector<std::size_t> up_at = {};  // their places among all
  RouterMemory memory;
};

class ServiceSimulation {
 public:
  explicit ServiceSimulation(const ServingSetup& setup);
  ServingRun run();

 private:
  void on(Token token);
  void arrive_next();
  void await_next();
  void await_arrival(double after_s, std::uint64_t request);
  void arrive(RequestId id);
  void accept_sent_with(RequestId id);
  void accept(RequestId id);
  void place_prompt(RequestId id);
  [[nodiscard]] std::optional<std::size_t> room_for(RequestId id);
  void line_up(RequestId id);  // for room on the decoding side
  void try_decode_room();
  void place_decode(RequestId id, std::size_t instance);
  void ask(RequestId id);
  void want_room(RequestId id);
  void drop_cache(RequestId id);
  void give_room_back(RequestId id);
  void offer_early(RequestId id, const CacheFront& ready);
  void await_layer(std::size_t instance);
  void end_layer(std::size_t instance);
  void begin_pass(std::size_t instance, double seconds);
  void begin_layer(std::size_t instance);
  void send_layer(std::size_t instance);
  void layer_is_computed(std::size_t instance);
  void layer_is_sent(std::size_t instance);
  void next_layer(std::size_t instance);
  void stop_layers(std::size_t instance);
  void send_layer_around(std::size_t instance);
  [[nodiscard]] bool is_layered(std::size_t instance) const { return !setup_.layered.empty() && setup_.layered[instance].layers > 0; }
  void offer(RequestId id);
  void send(RequestId id);
  void start_flows(std::size_t piece);
  void end_flow(std::size_t piece);
  void end_piece(std::size_t piece);
  void free_piece(std::size_t piece);
  void end_transfer(RequestId id);
  void end_pass(std::size_t instance);
  void end_answer(RequestId id);
  void begin_fault(std::size_t fault);
  void end_fault(std::size_t fault);
  [[nodiscard]] bool comes_again(std::size_t fault);
  void fail(std::size_t instance);
  void come_back(std::size_t instance);
  void load(std::size_t instance);
  void stop_load(std::size_t instance);
  void load_anew_from(std::size_t instance);
  void load_around();
  void end_load(std::size_t instance);
  [[nodiscard]] std::optional<std::size_t> peer_of(std::size_t instance) const;
  void works_again(std::size_t instance);
  void count_down(std::size_t instance, double until_s);
  void lose_sender(RequestId id);
  void lose_receiver(RequestId id);
  void stop_pieces(RequestId id);
  void forget_way(RequestId id);
  void recall(RequestId id);
  void give_up(RequestId id);
  void start_again(RequestId id);
  void drop(RequestId id, Stage as);
  void settle_slowness(const ServiceFault& of);
  void go_around();
  void send_anew(std::size_t piece);
  void settle_up();
  [[nodiscard]] bool apart() const { return sides_.size() > 1; }
  [[nodiscard]] static bool can_serve(const ServiceSide& side, const workloads::Lengths& tokens);
  void wake(std::size_t instance);
  void wake_touched();
  void schedule_end(std::size_t instance, double delay_s);
  [[nodiscard]] std::optional<std::size_t> choose(ServiceSide& side, const std::string& router_name, RequestId id,
                                                  const workloads::Lengths& tokens);
  [[nodiscard]] bool closed() const { return setup_.arrivals.kind == workloads::Arrivals::closed; }
  [[nodiscard]] double now() const { return machine_.now(); }

  const ServingSetup& setup_;
  Machine machine_;
  std::vector<RequestState> requests_;
  std::vector<ServiceSide> sides_;    // that of prompts before that of decoding, or one for both
  std::vector<Gaps> gaps_;            // [pool]
  std::vector<std::size_t> pool_of_;  // [instance]
  std::vector<Instance*> instances_;  // all
  std::vector<std::uint64_t> generation_;
  std::vector<std::size_t> touched_;
  struct Way {  // of a request between the sides
    std::size_t from = 0, to = 0;
    bool cached = false;              // its cache is kept at `from`
    bool reserved = false;            // there is room for it at `to`
    bool asking = false;              // the other engine is told of it
    bool asked = false;               // and knows
    CacheFront early, sent;           // what can leave before the prompt is whole, what has left
    std::vector<std::size_t> pieces;  // on their way
    int timeouts = 0;
    double began_s = 0;         // when the last piece left
    double aligning_s = 0;      // of the last one that came
    std::uint64_t attempt = 0;  // tokens of earlier ones mean nothing any more
  };
  std::vector<Way> ways_;
  struct Piece {  // of a cache that moves
    RequestId request = 0;
    CacheFront sent, ready;  // from what had left to what has left with it
    int flows = 0;
    double after_s = 0, bytes = 0, aligning_s = 0;
    std::vector<LinkIndex> links = {};  // that its flows are on; with faults
    std::uint64_t generation = 0;       // of those that had its place
  };
  [[nodiscard]] HandOver hand_over_of(const Piece& piece) const;
  std::vector<Piece> pieces_;
  std::vector<std::size_t> free_pieces_;
  std::deque<RequestId> on_their_way_;  // to the queues, in the order in which they were sent
  RoomLines wanting_room_;              // on the decoding side
  std::deque<RequestId> stranded_;      // no instance works that could compute their prompts
  std::vector<int> down_;               // [instance] faults that keep it from working
  std::vector<LinkIndex> load_links_;
  std::vector<std::size_t> loading_;  // [instance] reads under way of one that returns, which keep it from working as a fault does
  struct PeerLoad {
    std::size_t peer = 0;
    std::vector<LinkIndex> links;  // that its flows are on
  };
  std::map<std::size_t, PeerLoad> peer_loads_;  // [instance that reads from another]
  std::vector<double> down_since_, down_s_;     // [instance]
  std::vector<int> layer_;                      // [instance] computed in the pass under way
  // Passes that go layer by layer: each computes, and sends over the ports of its instance, at the rate at which it would take its time
  // alone or what the links leave.
  struct Layers {
    std::vector<LinkIndex> links;  // the ports', and one of its own that holds that rate
    LinkIndex own = 0;
    double port_bytes_per_s = 0;                  // of the narrowest
    double compute_s = 0, sent_s = 0, bytes = 0;  // of a layer
    bool beside = false;
    int left = 0, open = 0;           // layers; what is not over of the one under way
    std::vector<int> domains = {};    // [port]
    std::vector<LinkIndex> way = {};  // of the layer under way: without ports that are gone
    double times = 1;                 // as many bytes on each of them
    bool sending = false;
  };
  // Without ports that are gone, the others of whose domains carry their share; all of them where a domain has none left.
  [[nodiscard]] std::pair<std::vector<LinkIndex>, double> way_of(const Layers& layers) const;
  [[nodiscard]] bool crosses_gone(const std::vector<LinkIndex>& links) const;
  std::vector<LinkIndex> gone_;  // links that are cut now
  std::vector<Layers> layers_;   // [instance], or empty
  std::vector<bool> acts_;       // [fault] now
  struct Again {
    double done = 0;
    int idle = 0;
  };
  std::map<std::size_t, Again> again_;  // [fault] that comes again
  std::map<RequestId, std::vector<StageSpan>> followed_;
  int failures_ = 0;
  std::shared_ptr<ServiceRecord> record_;  // where it is asked for
  HostIndex host_ = 0;
  RequestId next_ = 0;
  std::size_t arrivals_ahead_ = 0;  // whose instants are known
  double end_s_ = 0;
};

}  // namespace rehearse::sim
