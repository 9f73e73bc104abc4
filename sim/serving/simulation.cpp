#include "sim/serving/simulation.hpp"

#include <algorithm>
#include <deque>
#include <stdexcept>

#include "sim/engine/machine.hpp"
#include "sim/serving/router.hpp"

namespace rehearse::sim {
namespace {

// What a token of the machine stands for: kind, whose, and for the end of a pass which of its ends is meant, since a run can be cut.
enum class Event : std::uint64_t { arrival, placed, asked, pass_end, transfer_start, flow_end, transfer_end };
constexpr unsigned kind_bits = 3, index_bits = 32;
Token token_of(Event event, std::uint64_t index, std::uint64_t generation = 0) {
  return static_cast<std::uint64_t>(event) | index << kind_bits | generation << (kind_bits + index_bits);
}
Event event_of(Token token) { return static_cast<Event>(token & ((1U << kind_bits) - 1)); }
std::uint64_t index_of(Token token) { return token >> kind_bits & ((std::uint64_t{1} << index_bits) - 1); }
constexpr std::uint64_t generations = std::uint64_t{1} << (64 - kind_bits - index_bits);

constexpr std::uint64_t routing_stream = 4;

struct Side {
  std::size_t first = 0;  // of its instances among all
  std::vector<std::unique_ptr<Instance>> instances;
  Gaps gaps;
  RouterMemory memory;
};

class Simulation {
 public:
  explicit Simulation(const ServingSetup& setup);
  ServingRun run();

 private:
  void on(Token token);
  void arrive_next();
  void await_next();
  void arrive(RequestId id);
  void accept(RequestId id);
  void place_prompt(RequestId id);
  void try_decode_room();
  void place_decode(RequestId id, std::size_t instance);
  void ask(RequestId id);
  void begin_transfer(RequestId id);
  void start_flows(RequestId id);
  void end_flow(RequestId id);
  void end_transfer(RequestId id);
  void end_pass(std::size_t instance);
  void end_answer(RequestId id);
  void wake(std::size_t instance);
  void wake_touched();
  void schedule_end(std::size_t instance, double delay_s);
  [[nodiscard]] std::size_t choose(Side& pool, const std::string& router);
  [[nodiscard]] bool closed() const { return setup_.arrivals.kind == workloads::Arrivals::closed; }
  [[nodiscard]] double now() const { return machine_.now(); }

  const ServingSetup& setup_;
  Machine machine_;
  std::vector<RequestState> requests_;
  std::vector<Side> pools_;
  std::vector<Instance*> instances_;  // all
  std::vector<std::uint64_t> generation_;
  std::vector<std::size_t> touched_;
  struct Way {  // of a request between the sides
    std::size_t from = 0, to = 0;
    int flows = 0;
    double after_s = 0;
  };
  std::vector<Way> ways_;
  std::deque<RequestId> wanting_room_;  // on the decoding side, first come first served
  HostIndex host_ = 0;
  RequestId next_ = 0;
  double end_s_ = 0;
};

Simulation::Simulation(const ServingSetup& setup) : setup_(setup), requests_(setup.requests.size()), pools_(setup.pools.size()) {
  constexpr double plain_speed = 1;
  host_ = machine_.add_host({&plain_speed, 1});
  if (setup.transfers) setup.transfers->build(machine_);
  machine_.seal();
  for (std::size_t i = 0; i < requests_.size(); ++i) requests_[i].tokens = setup.requests[i].tokens;
  for (std::size_t p = 0; p < pools_.size(); ++p) {
    Side& pool = pools_[p];
    pool.first = instances_.size();
    pool.memory.random = config::Random(config::mixed(setup.seed * config::golden_gamma + routing_stream + p));
    for (int i = 0; i < setup.pools[p].instances; ++i) {
      pool.instances.push_back(std::make_unique<Instance>(setup.pools[p].rules, *setup.pools[p].price, requests_, pool.gaps));
      instances_.push_back(pool.instances.back().get());
    }
  }
  generation_.resize(instances_.size());
  if (pools_.size() > 1) ways_.resize(requests_.size());
}

void Simulation::schedule_end(std::size_t instance, double delay_s) {
  generation_[instance] = (generation_[instance] + 1) % generations;
  machine_.after(std::max(0.0, delay_s), token_of(Event::pass_end, instance, generation_[instance]));
}

// An idle instance starts; one in a run of decode passes ends it at the next end of a pass when somebody can join.
void Simulation::wake(std::size_t instance) {
  Instance& one = *instances_[instance];
  if (!one.busy()) {
    if (const auto seconds = one.start(now())) schedule_end(instance, *seconds);
    if (one.made_room() && !wanting_room_.empty()) try_decode_room();
  } else if (const auto end_s = one.cut(now())) {
    schedule_end(instance, *end_s - now());
  }
}

// Everything that happens at an instant is known to the instances before they go on.
void Simulation::wake_touched() {
  for (std::size_t i = 0; i < touched_.size(); ++i) wake(touched_[i]);
  touched_.clear();
}

std::size_t Simulation::choose(Side& pool, const std::string& router) {
  const std::size_t chosen = pool.instances.size() == 1 ? 0 : RouterRegistry::get(router).choose(pool.instances, pool.memory, now());
  return pool.first + chosen;
}

void Simulation::place_prompt(RequestId id) {
  const std::size_t instance = choose(pools_.front(), setup_.prompt_router);
  if (pools_.size() > 1) ways_[id].from = instance;
  instances_[instance]->submit(id);
  touched_.push_back(instance);
}

void Simulation::arrive(RequestId id) {
  RequestState& request = requests_[id];
  request.arrival_s = request.since_s = now();
  for (std::size_t p = 0; p < pools_.size(); ++p) {
    if (pools_[p].instances.front()->can_hold(request.tokens)) continue;
    request.enter(Stage::rejected, now());
    if (closed() && next_ < requests_.size()) machine_.after(setup_.arrivals.think_s, token_of(Event::arrival, next_++));
    return;
  }
  const double request_s = setup_.pools.front().request_s;
  request_s > 0 ? machine_.after(request_s, token_of(Event::placed, id)) : accept(id);
}

void Simulation::accept(RequestId id) {
  RequestState& request = requests_[id];
  const bool decode_alone = setup_.pools.front().rules.role == Role::decode;
  if (!decode_alone && !(setup_.transfers && setup_.transfers->reserves_first())) return place_prompt(id);
  if (decode_alone) request.enter(Stage::waiting, now());
  wanting_room_.push_back(id);
  try_decode_room();
}

// First come, first served: who does not fit keeps back those behind.
void Simulation::try_decode_room() {
  while (!wanting_room_.empty()) {
    const RequestId id = wanting_room_.front();
    Side& pool = pools_.back();
    const RouterMemory before = pool.memory;
    const std::size_t instance = choose(pool, setup_.decode_router);
    std::size_t taken = instance;
    bool found = instances_[instance]->reserve(id, now());
    for (std::size_t i = 0; !found && i < pool.instances.size(); ++i) found = instances_[taken = pool.first + i]->reserve(id, now());
    if (!found) {
      pool.memory = before;  // nobody was sent anywhere
      return;
    }
    wanting_room_.pop_front();
    place_decode(id, taken);
  }
}

void Simulation::place_decode(RequestId id, std::size_t instance) {
  if (pools_.size() == 1) {  // the other side is unlimited: its cache is there
    requests_[id].enter(Stage::decode_queued, now());
    instances_[instance]->adopt(id);
    touched_.push_back(instance);
    return;
  }
  touched_.push_back(instance);  // its pages are fewer
  ways_[id].to = instance;
  setup_.transfers->reserves_first() ? place_prompt(id) : begin_transfer(id);
}

// The other engine has the request.
void Simulation::ask(RequestId id) {
  if (setup_.transfers->reserves_first()) return begin_transfer(id);
  wanting_room_.push_back(id);
  try_decode_room();
}

void Simulation::begin_transfer(RequestId id) {
  RequestState& request = requests_[id];
  request.enter(Stage::transferring, now());
  const HandOver hand_over =
      setup_.transfers->hand_over(ways_[id].from - pools_.front().first, ways_[id].to - pools_.back().first, id, request.tokens.input);
  machine_.after(hand_over.before_s, token_of(Event::transfer_start, id));
}

void Simulation::start_flows(RequestId id) {
  Way& way = ways_[id];
  const HandOver hand_over =
      setup_.transfers->hand_over(way.from - pools_.front().first, way.to - pools_.back().first, id, requests_[id].tokens.input);
  requests_[id].transfer_bytes = hand_over.bytes;
  way.flows = static_cast<int>(hand_over.flows.size());
  way.after_s = hand_over.after_s;

  for (const HandOver::Flow& flow : hand_over.flows) machine_.transfer(host_, host_, flow.links, flow.bytes, token_of(Event::flow_end, id));
  if (way.flows == 0) machine_.after(way.after_s, token_of(Event::transfer_end, id));
}

void Simulation::end_flow(RequestId id) {
  if (--ways_[id].flows == 0) machine_.after(ways_[id].after_s, token_of(Event::transfer_end, id));
}

void Simulation::end_transfer(RequestId id) {
  const Way& way = ways_[id];
  requests_[id].enter(Stage::decode_queued, now());
  instances_[way.from]->release(id);
  instances_[way.to]->adopt(id);
  touched_.push_back(way.from);
  touched_.push_back(way.to);
}

void Simulation::end_answer(RequestId id) {
  end_s_ = now();
  if (!closed() || next_ >= requests_.size()) return;
  if (setup_.arrivals.think_s > 0) {
    machine_.after(setup_.arrivals.think_s, token_of(Event::arrival, next_++));
  } else {
    arrive(next_++);
  }
  static_cast<void>(id);
}

void Simulation::end_pass(std::size_t instance) {
  const Instance::Finished finished = instances_[instance]->finish(now());
  touched_.push_back(instance);
  for (const RequestId id : finished.prompts) {
    RequestState& request = requests_[id];
    const bool answers = pools_.size() == 1 || setup_.transfers->prefill_answers_first();
    if (answers) {
      request.first_s = request.last_s = now();
      request.generated = 1;
    }
    if (pools_.size() == 1 || (answers && request.tokens.output == 1)) {
      request.enter(Stage::done, now());
      instances_[instance]->release(id);
      end_answer(id);
      continue;
    }
    request.enter(Stage::waiting, now());
    machine_.after(setup_.pools.back().request_s, token_of(Event::asked, id));
  }
  for (const RequestId id : finished.answers) end_answer(id);
  if (pools_.size() > 1 || setup_.pools.front().rules.role == Role::decode) try_decode_room();
}

// The next request of an open load, with those that come at the same instant.
void Simulation::arrive_next() {
  const double instant_s = setup_.requests[next_].arrival_s;
  while (next_ < requests_.size() && setup_.requests[next_].arrival_s <= instant_s) arrive(next_++);
  await_next();
}

void Simulation::await_next() {
  if (next_ == requests_.size()) return;
  machine_.after(std::max(0.0, setup_.requests[next_].arrival_s - now()), token_of(Event::arrival, requests_.size()));
}

void Simulation::on(Token token) {
  const std::uint64_t index = index_of(token);
  const auto id = static_cast<RequestId>(index);
  switch (event_of(token)) {
    case Event::arrival:
      index < requests_.size() ? arrive(id) : arrive_next();
      break;
    case Event::placed:
      accept(id);
      break;
    case Event::asked:
      ask(id);
      break;
    case Event::pass_end:
      if (token != token_of(Event::pass_end, index, generation_[index])) return;  // of a run that was cut
      end_pass(index);
      break;
    case Event::transfer_start:
      start_flows(id);
      break;
    case Event::flow_end:
      end_flow(id);
      break;
    case Event::transfer_end:
      end_transfer(id);
      break;
  }
  wake_touched();
}

ServingRun Simulation::run() {
  if (closed()) {
    const auto clients = std::min<std::size_t>(static_cast<std::size_t>(setup_.arrivals.clients), requests_.size());
    while (next_ < clients) arrive(next_++);
  } else {
    await_next();
  }
  wake_touched();
  machine_.run([this](Token token) { on(token); });
  ServingRun out;
  out.end_s = end_s_;
  for (const Side& pool : pools_) {
    out.pools.emplace_back();
    out.pools.back().gaps = pool.gaps;
    for (const auto& instance : pool.instances) out.pools.back().instances.push_back(instance->use());
  }
  for (const Instance* instance : instances_) out.pages_left.push_back(instance->pages_used(now()));
  out.requests = std::move(requests_);
  return out;
}

}  // namespace

ServingRun simulate_serving(const ServingSetup& setup) { return Simulation(setup).run(); }

}  // namespace rehearse::sim
