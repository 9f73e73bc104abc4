#include "sim/serving/simulation.hpp"

#include <algorithm>
#include <cmath>

#include "sim/serving/simulation_state.hpp"

namespace rehearse::sim {
namespace {

constexpr std::uint64_t routing_stream = 4;

}  // namespace

ServiceSimulation::ServiceSimulation(const ServingSetup& setup)
    : setup_(setup), requests_(setup.requests.size()), gaps_(setup.pools.size()) {
  constexpr double plain_speed = 1;
  host_ = machine_.add_host({&plain_speed, 1});
  if (setup.transfers) setup.transfers->build(machine_);
  for (std::size_t i = 0; i < setup.layered.size(); ++i) {
    Layers& layers = layers_.emplace_back();
    double narrowest = INFINITY;
    const LayeredPasses& how = setup.layered[i];
    for (std::size_t port = 0; port < how.ports.size(); ++port) {
      const auto known = setup.transfers->link(how.ports[port]);
      if (!known) continue;
      layers.links.push_back(known->first);
      layers.domains.push_back(how.domains.empty() ? 0 : how.domains[port]);
      narrowest = std::min(narrowest, known->second);
    }
    layers.port_bytes_per_s = narrowest;
    layers.own = machine_.add_link(1);
    layers.links.push_back(layers.own);
  }
  for (const double bytes_per_s : setup.loads.links) load_links_.push_back(machine_.add_link(bytes_per_s));
  machine_.seal();
  for (std::size_t i = 0; i < requests_.size(); ++i) requests_[i].tokens = setup.requests[i].tokens;
  for (const RequestId id : setup.followed) requests_.at(id).history = &followed_[id];
  for (std::size_t p = 0; p < setup.pools.size(); ++p) {
    const PoolSetup& pool = setup.pools[p];
    if (p == 0 || pool.rules.role != setup.pools[p - 1].rules.role) {
      ServiceSide& side = sides_.emplace_back();
      side.first = instances_.size();
      side.memory.random = config::Random(config::mixed(setup.seed * config::golden_gamma + routing_stream + sides_.size() - 1));
    }
    ServiceSide& side = sides_.back();
    side.request_s = std::max(side.request_s, pool.request_s);
    for (int i = 0; i < pool.instances; ++i) {
      side.instances.push_back(std::make_unique<Instance>(pool.rules, *pool.price, requests_, gaps_[p]));
      instances_.push_back(side.instances.back().get());
      pool_of_.push_back(p);
    }
  }
  generation_.resize(instances_.size());
  down_.resize(instances_.size());
  loading_.resize(instances_.size());
  down_since_.resize(instances_.size());
  down_s_.resize(instances_.size());
  layer_.resize(instances_.size());
  acts_.resize(setup.faults.size());
  if (apart()) ways_.resize(requests_.size());
  if (setup.records) {
    std::vector<double> rates;
    if (setup.transfers) {
      for (const TransferLink& link : setup.transfers->links()) rates.push_back(link.bytes_per_s);
    }
    record_ = std::make_shared<ServiceRecord>(instances_.size(), setup.slices_from_s, std::move(rates));
  }
  settle_up();
}

void ServiceSimulation::settle_up() {
  for (ServiceSide& side : sides_) {
    side.up.clear();
    side.up_at.clear();
    for (std::size_t i = 0; i < side.instances.size(); ++i) {
      if (down_[side.first + i] > 0) continue;
      side.up.push_back(side.instances[i].get());
      side.up_at.push_back(side.first + i);
    }
  }
}

void ServiceSimulation::schedule_end(std::size_t instance, double delay_s) {
  generation_[instance] = (generation_[instance] + 1) % generations;
  machine_.after(std::max(0.0, delay_s), token_of(ServiceEvent::pass_end, instance, generation_[instance]));
}

// An idle instance starts; one in a run of decode passes ends it at the next end of a pass when somebody can join.
void ServiceSimulation::wake(std::size_t instance) {
  Instance& one = *instances_[instance];
  if (down_[instance] > 0) return;
  if (!one.busy()) {
    if (const auto seconds = one.start(now())) {
      begin_pass(instance, *seconds);
      layer_[instance] = 0;
      await_layer(instance);
    }
    if (one.made_room() && !wanting_room_.empty()) try_decode_room();
  } else if (const auto end_s = one.cut(now())) {
    schedule_end(instance, *end_s - now());
  }
}

// Everything that happens at an instant is known to the instances before they go on.
void ServiceSimulation::wake_touched() {
  for (std::size_t i = 0; i < touched_.size(); ++i) wake(touched_[i]);  // NOLINT(modernize-loop-convert): which may touch more
  if (record_) {
    for (const std::size_t instance : touched_) record_->level(instance, now(), *instances_[instance]);
  }
  touched_.clear();
}

void ServiceSimulation::place_prompt(RequestId id) {
  const workloads::Lengths left{requests_[id].prompt, requests_[id].tokens.output - requests_[id].generated};
  const auto instance = choose(sides_.front(), setup_.prompt_router, id, left);
  if (!instance) return stranded_.push_back(id);
  if (apart()) ways_[id].from = *instance;
  instances_[*instance]->submit(id, now());
  touched_.push_back(*instance);
}

void ServiceSimulation::arrive(RequestId id) {
  RequestState& request = requests_[id];
  request.arrival_s = request.since_s = now();
  request.prompt = request.tokens.input;
  for (const ServiceSide& side : sides_) {
    if (!can_serve(side, request.tokens)) return drop(id, Stage::rejected);
  }
  const double request_s = sides_.front().request_s;
  if (request_s <= 0) return accept(id);
  on_their_way_.push_back(id);
  machine_.after(request_s, token_of(ServiceEvent::placed, id));
}

// With those that were sent at the same instant: an idle instance begins with all of them.
void ServiceSimulation::accept_sent_with(RequestId id) {
  const double sent_s = requests_[id].arrival_s;
  while (!on_their_way_.empty() && requests_[on_their_way_.front()].arrival_s <= sent_s) {
    const RequestId next = on_their_way_.front();
    on_their_way_.pop_front();
    accept(next);
  }
}

void ServiceSimulation::accept(RequestId id) {
  RequestState& request = requests_[id];
  const bool decode_alone = setup_.pools.front().rules.role == Role::decode;
  if (!decode_alone && !(apart() && setup_.transfers->reserves_first())) return place_prompt(id);
  if (decode_alone) request.enter(Stage::waiting, now());
  want_room(id);
}

void ServiceSimulation::want_room(RequestId id) {
  line_up(id);
  try_decode_room();
}

// It is not served; a client of a closed loop goes on to the next.
void ServiceSimulation::drop(RequestId id, Stage as) {
  requests_[id].enter(as, now());
  if (closed() && next_ < requests_.size()) await_arrival(setup_.arrivals.think_s, next_++);
}

void ServiceSimulation::place_decode(RequestId id, std::size_t instance) {
  if (!apart()) {  // the other side is unlimited: its cache is there
    requests_[id].enter(Stage::decode_queued, now());
    touched_.push_back(instance);
    instances_[instance]->adopt(id, now());  // whoever waits has its turn after it
    return;
  }
  touched_.push_back(instance);  // its pages are fewer
  ways_[id].to = instance;
  ways_[id].reserved = true;
  ways_[id].asked ? send(id) : place_prompt(id);
}

void ServiceSimulation::end_answer(RequestId id) {
  end_s_ = now();
  if (!closed() || next_ >= requests_.size()) return;
  if (setup_.arrivals.think_s > 0) {
    await_arrival(setup_.arrivals.think_s, next_++);
  } else {
    arrive(next_++);
  }
  static_cast<void>(id);
}

void ServiceSimulation::end_pass(std::size_t instance) {
  if (record_) {
    record_->pages_grew(instance, now(), instances_[instance]->pages_at_end());
    record_->passes(instance, now(), instances_[instance]->under_way(), false);
  }
  const Instance::Finished finished = instances_[instance]->finish(now());
  touched_.push_back(instance);
  if (apart() && instance < sides_.back().first) {  // the other side computes again what it had to put back
    for (const Instance::Progress& prompt : finished.begun) offer_early(prompt.id, {setup_.transfers->early(instance, prompt.tokens)});
  }
  for (const RequestId id : finished.prompts) {
    RequestState& request = requests_[id];
    const bool answers = !apart() || setup_.transfers->prefill_answers_first();
    if (answers) {
      if (request.first_s < 0) request.first_s = now();
      if (request.generated > 0) gaps_[pool_of_[instance]].add(now() - request.last_s, 1);
      request.last_s = now();
      ++request.generated;
    }
    if (!apart() || (answers && request.tokens.output == request.generated)) {
      request.enter(Stage::done, now());
      instances_[instance]->release(id);
      if (apart() && ways_[id].reserved) {  // an answer of one token needs no decoding
        ways_[id].reserved = false;
        instances_[ways_[id].to]->cancel(id, now());
        touched_.push_back(ways_[id].to);
      }
      end_answer(id);
      continue;
    }
    request.enter(Stage::waiting, now());
    ways_[id].cached = true;
    offer(id);
  }
  for (const RequestId id : finished.answers) end_answer(id);
  if (apart() || setup_.pools.front().rules.role == Role::decode) try_decode_room();
}

// The next request of an open load, with those that come at the same instant.
void ServiceSimulation::arrive_next() {
  const double instant_s = setup_.requests[next_].arrival_s;
  while (next_ < requests_.size() && setup_.requests[next_].arrival_s <= instant_s) arrive(next_++);
  await_next();
}

void ServiceSimulation::await_next() {
  if (next_ == requests_.size()) return;
  await_arrival(std::max(0.0, setup_.requests[next_].arrival_s - now()), requests_.size());
}

void ServiceSimulation::await_arrival(double after_s, std::uint64_t request) {
  ++arrivals_ahead_;
  machine_.after(after_s, token_of(ServiceEvent::arrival, request));
}

void ServiceSimulation::on(Token token) {
  const std::uint64_t index = index_of(token);
  const auto id = static_cast<RequestId>(index);
  const ServiceEvent event = event_of(token);
  const bool between = event == ServiceEvent::asked || event == ServiceEvent::timeout;
  const bool moving = event == ServiceEvent::transfer_start || event == ServiceEvent::flow_end || event == ServiceEvent::transfer_end;
  if (between && generation_of(token) != ways_[id].attempt) return;
  if (moving && generation_of(token) != pieces_[index].generation) return;
  switch (event) {
    case ServiceEvent::arrival:
      --arrivals_ahead_;
      index < requests_.size() ? arrive(id) : arrive_next();
      break;
    case ServiceEvent::placed:
      accept_sent_with(id);
      break;
    case ServiceEvent::asked:
      ask(id);
      break;
    case ServiceEvent::pass_end:
      if (token != token_of(ServiceEvent::pass_end, index, generation_[index])) return;  // of a run that was cut
      end_pass(index);
      break;
    case ServiceEvent::layer_end:
      if (token == token_of(ServiceEvent::layer_end, index, generation_[index])) end_layer(index);
      break;
    case ServiceEvent::layer_computed:
      if (token == token_of(ServiceEvent::layer_computed, index, generation_[index])) layer_is_computed(index);
      break;
    case ServiceEvent::layer_sent:
      if (token == token_of(ServiceEvent::layer_sent, index, generation_[index])) layer_is_sent(index);
      break;
    case ServiceEvent::loaded:
      end_load(index);
      break;
    case ServiceEvent::transfer_start:
      start_flows(index);
      break;
    case ServiceEvent::flow_end:
      end_flow(index);
      break;
    case ServiceEvent::transfer_end:
      end_piece(index);
      break;
    case ServiceEvent::timeout:
      ++ways_[id].timeouts;
      give_up(id);
      break;
    case ServiceEvent::fault:
      begin_fault(index);
      break;
    case ServiceEvent::over:
      end_fault(index);
      break;
  }
  wake_touched();
}

ServingRun ServiceSimulation::run() {
  for (std::size_t i = 0; i < setup_.faults.size(); ++i) machine_.after(setup_.faults[i].from_s, token_of(ServiceEvent::fault, i));
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
  const bool all_served = std::ranges::all_of(requests_, [](const RequestState& request) { return request.stage == Stage::done; });
  out.failures = failures_;
  for (std::size_t i = 0; i < instances_.size(); ++i) {
    if (down_[i] > 0) count_down(i, INFINITY);
  }
  out.down_s = std::move(down_s_);
  for (const Gaps& gaps : gaps_) out.pools.emplace_back().gaps = gaps;
  for (std::size_t i = 0; i < instances_.size(); ++i) {
    const InstanceUse& use = instances_[i]->use();
    out.pools[pool_of_[i]].instances.push_back(use);
    out.pages_left.push_back(instances_[i]->pages_used(now()));
    if (!all_served) out.end_s = std::max(out.end_s, use.until_s);
  }
  for (const RequestId id : setup_.followed) requests_[id].history = nullptr;
  out.followed = std::move(followed_);
  out.requests = std::move(requests_);
  if (record_) record_->end(out.end_s);
  if (record_ && setup_.transfers) out.links = setup_.transfers->links();
  out.record = std::move(record_);
  return out;
}

ServingRun simulate_serving(const ServingSetup& setup) { return ServiceSimulation(setup).run(); }

}  // namespace rehearse::sim
