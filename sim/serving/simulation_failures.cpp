// What failures do to requests on their way (docs/serving.md, "Failures").
#include <algorithm>
#include <cmath>
#include <map>

#include "sim/faults/step_faults.hpp"
#include "sim/serving/simulation_state.hpp"

namespace rehearse::sim {
namespace {

constexpr int most_timeouts = 10;  // of the hand-overs of one request, which is lost after them

}  // namespace

void ServiceSimulation::begin_fault(std::size_t fault) {
  const ServiceFault& what = setup_.faults[fault];
  acts_[fault] = true;
  if (std::isfinite(what.for_s)) machine_.after(what.for_s, token_of(ServiceEvent::over, fault));
  for (const std::size_t instance : what.instances) {
    if (what.kind == ServiceFault::Kind::fails) fail(instance);
  }
  settle_slowness(what);
  if (what.kind == ServiceFault::Kind::cut) go_around();
}

void ServiceSimulation::end_fault(std::size_t fault) {
  const ServiceFault& what = setup_.faults[fault];
  acts_[fault] = false;
  for (const std::size_t instance : what.instances) {
    if (what.kind == ServiceFault::Kind::fails) come_back(instance);
  }
  settle_slowness(what);
  if (what.kind == ServiceFault::Kind::cut) go_around();
  if (what.every_s > 0 && comes_again(fault)) machine_.after(what.every_s - what.for_s, token_of(ServiceEvent::fault, fault));
}

// Where requests wait for what never comes back nothing would end otherwise. While more are to come something does, and while instances
// work, unless they fail time and again.
bool ServiceSimulation::comes_again(std::size_t fault) {
  constexpr int most_idle = 1000;  // times in a row in which no token of an answer was computed and no request ended
  Again& again = again_[fault];
  const bool works = setup_.faults[fault].kind != ServiceFault::Kind::fails && std::ranges::any_of(instances_, &Instance::busy);
  if (arrivals_ahead_ > 0 || works) {
    again.idle = 0;
    return true;
  }
  auto done = static_cast<double>(std::ranges::count_if(requests_, [](const RequestState& one) { return one.stage >= Stage::done; }));
  for (const Instance* one : instances_) done += one->use().answer_tokens;
  again.idle = done > again.done ? 0 : again.idle + 1;
  again.done = done;
  return again.idle < most_idle &&
         (again.idle == 0 || std::ranges::any_of(requests_, [](const RequestState& one) { return one.stage < Stage::done; }));
}

// What a fault speaks of is as slow as the slowest that acts on it now.
void ServiceSimulation::settle_slowness(const ServiceFault& of) {
  using Kind = ServiceFault::Kind;
  std::map<std::size_t, double> instances;
  std::map<ServiceLink, double> links;
  for (const std::size_t instance : of.instances) instances[instance] = 1;
  for (const ServiceLink& link : of.links) links[link] = 1;
  const auto slow = [](auto& known, const auto& names, double times) {
    for (const auto& name : names) {
      if (const auto found = known.find(name); found != known.end()) found->second = std::max(found->second, times);
    }
  };
  for (std::size_t i = 0; i < setup_.faults.size(); ++i) {
    if (!acts_[i]) continue;
    const ServiceFault& other = setup_.faults[i];
    if (other.kind == Kind::slows) slow(instances, other.instances, other.times);
    slow(links, other.links, other.kind == Kind::cut ? down_slowdown : other.times);
  }
  for (const auto& [instance, times] : instances) {
    if (of.kind != Kind::slows) break;
    instances_[instance]->slow_down(times);
    touched_.push_back(instance);
  }
  for (const auto& [link, times] : links) {
    if (const auto known = setup_.transfers->link(link)) machine_.set_bandwidth(known->first, known->second / times);
  }
}

// Pieces and layers on links that are cut now begin again on another way, which the end of a cut may bring too; where there is none they
// wait.
void ServiceSimulation::go_around() {
  std::vector<ServiceLink> links;
  for (std::size_t i = 0; i < setup_.faults.size(); ++i) {
    const ServiceFault& fault = setup_.faults[i];
    if (acts_[i] && fault.kind == ServiceFault::Kind::cut) links.insert(links.end(), fault.links.begin(), fault.links.end());
  }
  setup_.transfers->cut(links);
  gone_.clear();
  for (const ServiceLink& link : links) {
    if (const auto known = setup_.transfers->link(link)) gone_.push_back(known->first);
  }
  for (std::size_t instance = 0; instance < layers_.size(); ++instance) send_layer_around(instance);
  load_around();
  for (const Way& way : ways_) {
    for (const std::size_t place : way.pieces) {
      if (!crosses_gone(pieces_[place].links)) continue;
      const HandOver anew = hand_over_of(pieces_[place]);
      if (std::ranges::none_of(anew.flows, [&](const HandOver::Flow& flow) { return crosses_gone(flow.links); })) send_anew(place);
    }
  }
}

// What it worked on goes back to the routers at once: prompts to another instance, answers from their prompt and what is shown of them. A
// hand-over that it takes part in is noticed by the other side.
void ServiceSimulation::fail(std::size_t instance) {
  if (loading_[instance] > 0) {  // it has not worked yet: from the beginning, when the repair is done
    stop_load(instance);
    return;
  }
  if (down_[instance]++ > 0) return;
  ++failures_;
  down_since_[instance] = now();
  if (record_) {
    record_->passes(instance, now(), instances_[instance]->under_way(), true);
    record_->outage(instance, now(), true);
  }
  generation_[instance] = (generation_[instance] + 1) % generations;  // what is under way never ends
  stop_layers(instance);
  settle_up();
  const std::vector<RequestId> lost = instances_[instance]->fail(now());
  touched_.push_back(instance);
  for (RequestId id = 0; id < ways_.size(); ++id) {
    const Way& way = ways_[id];
    if (way.cached && way.from == instance) lose_sender(id);
    if (way.reserved && way.to == instance) lose_receiver(id);
  }
  for (const RequestId id : lost) {
    if (apart()) recall(id);
    start_again(id);
  }
  try_decode_room();
  load_anew_from(instance);
}

// Of the time up to the last arrival.
void ServiceSimulation::count_down(std::size_t instance, double until_s) {
  const double last_s = setup_.requests.back().arrival_s;
  down_s_[instance] += std::max(0.0, std::min(until_s, last_s) - std::min(down_since_[instance], last_s));
}

void ServiceSimulation::works_again(std::size_t instance) {
  count_down(instance, now());
  if (record_) record_->outage(instance, now(), false);
  settle_up();
  touched_.push_back(instance);
  std::deque<RequestId> stranded;
  std::swap(stranded, stranded_);
  for (const RequestId id : stranded) place_prompt(id);
  try_decode_room();
}

// The cache is gone. The receiver notices when the hand-over is not done in time, and holds its pages until then.
void ServiceSimulation::lose_sender(RequestId id) {
  Way& way = ways_[id];
  way.cached = false;
  stop_pieces(id);
  if (requests_[id].stage == Stage::transferring) {
    machine_.after(std::max(0.0, way.began_s + setup_.timeout_s - now()), token_of(ServiceEvent::timeout, id, way.attempt));
    return;
  }
  wanting_room_.erase(id);
  start_again(id);
}

// The room is gone; a cache that stands at the other side looks for another.
void ServiceSimulation::lose_receiver(RequestId id) {
  Way& way = ways_[id];
  way.reserved = false;
  if (!way.asked) return;  // nothing of its cache has left
  const bool whole = requests_[id].stage == Stage::transferring;
  stop_pieces(id);
  if (whole && !way.cached) return start_again(id);
  if (setup_.transfers->reserves_first()) {
    if (whole) drop_cache(id);
    return;
  }
  ++requests_[id].retries;
  if (whole) requests_[id].enter(Stage::waiting, now());
  line_up(id);
}

// A hand-over that did not end in time.
void ServiceSimulation::give_up(RequestId id) {
  Way& way = ways_[id];
  stop_pieces(id);
  if (way.cached) {
    instances_[way.from]->release(id);
    touched_.push_back(way.from);
  }
  instances_[way.to]->cancel(id, now());
  touched_.push_back(way.to);
  way.cached = way.reserved = false;
  way.timeouts < most_timeouts ? start_again(id) : drop(id, Stage::lost);
  try_decode_room();
}

// From its prompt and what is shown of its answer.
void ServiceSimulation::start_again(RequestId id) {
  RequestState& request = requests_[id];
  if (apart()) {
    forget_way(id);
    if (request.tokens.input + request.generated != request.prompt) give_room_back(id);
  }
  if (request.stage != Stage::queued) {
    ++request.retries;
    request.redone += request.tokens.input + request.generated;
  }
  request.prompt = request.tokens.input + request.generated;
  const bool decode_alone = setup_.pools.front().rules.role == Role::decode;
  request.enter(decode_alone ? Stage::waiting : Stage::queued, now());
  const workloads::Lengths left{request.prompt, request.tokens.output - request.generated};
  if (!can_serve(sides_.front(), left)) return drop(id, Stage::rejected);
  const bool needs_room = decode_alone || (apart() && setup_.transfers->reserves_first() && !ways_[id].reserved);
  needs_room ? line_up(id) : place_prompt(id);
}

// Room is for a prompt of one length: the longer one asks anew.
void ServiceSimulation::give_room_back(RequestId id) {
  Way& way = ways_[id];
  if (!way.reserved) return;
  way.reserved = false;
  instances_[way.to]->cancel(id, now());
  touched_.push_back(way.to);
}

// Its room is gone: where room is taken before a prompt is computed no cache may wait for it, since prompts that have room may wait for the
// pages that it keeps.
void ServiceSimulation::drop_cache(RequestId id) {
  Way& way = ways_[id];
  instances_[way.from]->release(id);
  touched_.push_back(way.from);
  way.cached = false;
  start_again(id);
}

}  // namespace rehearse::sim
