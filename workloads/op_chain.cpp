#include "workloads/op_chain.hpp"

namespace rehearse::workloads {
namespace {

// What communication of a group is for, and the stream it runs on.
struct PhaseAndStream {
  Phase phase;
  Stream stream;
};

PhaseAndStream phase_and_stream_of(GroupKind kind) {
  switch (kind) {
    case GroupKind::tp:
      return {Phase::tp, Stream::tp};
    case GroupKind::cp:
      return {Phase::cp, Stream::cp};
    case GroupKind::pp:
      return {Phase::pp, Stream::pp_forward};
    case GroupKind::ep:
    case GroupKind::etp:
      return {Phase::ep, Stream::ep_dispatch};
    case GroupKind::to_host:
      return {Phase::offload, Stream::d2h};
    case GroupKind::from_host:
      return {Phase::offload, Stream::h2d};
    case GroupKind::host_memory:
      return {Phase::offload, Stream::host};
    case GroupKind::dp:
    case GroupKind::dp_cp:
    case GroupKind::edp:
    case GroupKind::shard:
    case GroupKind::replicas:
    case GroupKind::embedding:
      break;
  }
  return {Phase::dp, Stream::dp};
}

}  // namespace

OpId OpChain::append(Op op, const std::string& label) {
  const OpId id = build_.graph.add(op, label);
  for (const OpId before : tail_) build_.graph.depend(before, id);
  for (const OpId before : extra_) build_.graph.depend(before, id);
  extra_.clear();
  tail_ = {id};
  if (first_ == no_op) first_ = id;
  return id;
}

Op OpChain::placed(OpKind kind, Stream stream, Phase phase) const {
  Op op{kind, stream, phase};
  op.rank = rank_;
  op.microbatch = at_.slot.microbatch;
  op.chunk = at_.slot.chunk;
  op.layer = at_.layer;
  op.unit = at_.unit;
  op.units = static_cast<std::uint16_t>(at_.units);
  op.pass = at_.pass;
  return op;
}

void OpChain::compute(const void* origin, const std::vector<Operator>& operators, int repeat, Phase phase, const std::string& label) {
  Op op = placed(OpKind::compute, Stream::compute, phase);
  op.item = build_.work_of(origin, operators, repeat);
  append(op, label);
}

void OpChain::compute(const ExpertWork& work, Phase phase, const std::string& label) {
  Op op = placed(OpKind::compute, Stream::compute, phase);
  op.item = build_.work_of(work, at_.layer);
  append(op, label);
}

// A segment of a pass.
void OpChain::queued(const ComputeSegment& segment, Phase phase, const std::string& label) {
  Op op = placed(OpKind::compute, Stream::compute, phase);
  const auto [known, added] = queued_.try_emplace({&segment, at_.units}, 0);
  if (added) {
    std::vector<std::uint32_t> groups;
    if (segment.queue != nullptr) {
      for (const Communication& call : segment.queue->calls) groups.push_back(group(call.group));
      for (const PassQueue::Pair& pair : segment.queue->pairs) groups.push_back(group(pair.collective.group));
    }
    known->second = build_.work_of(&segment, segment.operators, at_.units, segment.queue, groups);
  }
  op.item = known->second;
  append(op, label);
}

void OpChain::paired(const void* origin, const Operator& product, Phase phase, const std::string& label) {
  Op op = placed(OpKind::compute, Stream::compute, phase);
  op.item = build_.work_of_pair(origin, product);
  append(op, label + " " + product.name);
}

void OpChain::step_overhead() {
  Op op = placed(OpKind::compute, Stream::compute, Phase::optimizer);
  op.item = build_.overhead_work();
  append(op, "step overhead");
}

std::uint32_t OpChain::group(GroupKind kind) {
  const auto [it, added] = groups_.try_emplace(kind, 0);
  if (added) it->second = build_.group_of(kind, global_);
  return it->second;
}

Op OpChain::collective_op(const Communication& what, int repeat) {
  // A shard comes from the host in the stream of the gather that follows (DeepSpeed's and FSDP's).
  const bool shard = what.group == GroupKind::from_host;
  const PhaseAndStream where = phase_and_stream_of(shard ? GroupKind::dp_cp : what.group);
  Op op = placed(shard ? OpKind::copy : OpKind::collective, where.stream, where.phase);
  op.item = build_.graph.add_call(what, repeat, group(what.group));
  return op;
}

void OpChain::collective(const Communication& what, int repeat, const std::string& label) { append(collective_op(what, repeat), label); }

OpId OpChain::beside(const Communication& what, int repeat, const std::vector<OpId>& after, const std::string& label) {
  const OpId id = build_.graph.add(collective_op(what, repeat), label + " " + what.name);
  for (const OpId before : after) build_.graph.depend(before, id);
  return id;
}

Op OpChain::copy_op(const std::string& name, GroupKind way, double bytes, Phase phase) {
  Op op = placed(OpKind::copy, phase_and_stream_of(way).stream, phase);
  op.item = build_.graph.add_call({name, CollectiveKind::send_recv, way, bytes, at_.pass}, 1, group(way));
  return op;
}

void OpChain::copy(const std::string& label, GroupKind way, double bytes) { append(copy_op(label, way, bytes, Phase::optimizer), label); }

OpId OpChain::copy_beside(const std::string& name, GroupKind way, double bytes, const std::vector<OpId>& after, const std::string& label) {
  const OpId id = build_.graph.add(copy_op(name, way, bytes, Phase::offload), label);
  for (const OpId before : after) build_.graph.depend(before, id);
  return id;
}

OpId OpChain::send(bool forward, int peer, double bytes) {
  const std::uint32_t receiver = build_.folding.class_of[peer];
  const auto [group, added] = group_to_.try_emplace(peer, 0);
  if (added) group->second = build_.pair_of(rank_, peer);
  const Communication what{forward ? "send activations" : "send gradients", CollectiveKind::send_recv, GroupKind::pp, bytes,
                           forward ? Pass::forward : Pass::backward_input};
  Op op = placed(OpKind::p2p, forward ? Stream::pp_forward : Stream::pp_backward, Phase::pp);
  op.item = build_.graph.add_call(what, 1, group->second);
  const OpId id = build_.graph.add(op, what.name);
  for (const OpId before : tail_) build_.graph.depend(before, id);
  build_.graph.set_receiver(id, receiver);
  return id;
}

void OpChain::run(const std::vector<Segment>& segments, Phase phase, const std::string& label) {
  for (const Segment& segment : segments) run(segment, phase, label);
}

void OpChain::run(const Segment& segment, Phase phase, const std::string& label) {
  if (const auto* c = std::get_if<ComputeSegment>(&segment)) {
    queued(*c, phase, c->name.empty() ? label : label + " " + c->name);
  } else if (const auto* call = std::get_if<CallSegment>(&segment)) {
    collective(call->what, call->repeat * at_.units, label + " " + call->what.name);
  } else if (const auto* ring_segment = std::get_if<RingSegment>(&segment)) {
    ring(*ring_segment, phase, label);
  } else if (const auto* expert_segment = std::get_if<ExpertSegment>(&segment)) {
    experts(*expert_segment, phase, label);
  } else if (const auto* split_segment = std::get_if<SplitSegment>(&segment)) {
    split(*split_segment, phase, label);
  } else {
    both(std::get<BesideSegment>(segment), phase, label);
  }
}

void OpChain::enter(int which) {
  if (which == inside_) return;
  inside_ = which;
  std::swap(at_, other_.at);
  std::swap(tail_, other_.tail);
  std::swap(extra_, other_.extra);
  std::swap(first_, other_.first);
}

void OpChain::join() {
  enter(0);
  tail_.insert(tail_.end(), other_.tail.begin(), other_.tail.end());
}

// Equation (20): the pieces of a product wait for (or are followed by) the pieces of its collective; the tp stream runs beside.
void OpChain::split(const SplitSegment& segment, Phase phase, const std::string& label) {
  const std::vector<OpId> before = tail_;
  OpId last_piece = no_op;
  for (int i = 0; i < segment.splits; ++i) {
    if (segment.collective_first) {
      const OpId gathered = beside(segment.collective, 1, before, label);
      tail_ = {gathered};
      paired(&segment, segment.product, phase, label);
    } else {
      paired(&segment, segment.product, phase, label);
      last_piece = beside(segment.collective, 1, tail_, label);
    }
  }
  if (last_piece != no_op) tail_.push_back(last_piece);
}

void OpChain::both(const BesideSegment& segment, Phase phase, const std::string& label) {
  const OpId collective = beside(segment.collective, 1, tail_, label);
  paired(&segment, segment.product, phase, label);
  tail_.push_back(collective);
}

// One after another in one stream; the last of them.
OpId OpChain::beside(const std::vector<Communication>& calls, std::vector<OpId> after, Stream stream, const std::string& label) {
  for (const Communication& what : calls) {
    Op op = collective_op(what, 1);
    op.stream = stream;
    const OpId id = build_.graph.add(op, label + " " + what.name);
    for (const OpId before : after) build_.graph.depend(before, id);
    after = {id};
  }
  return after.empty() ? no_op : after.front();
}

// Three streams: while the experts work on a chunk, the next one is dispatched and the one before it combined. Two chunks have buffers: a
// dispatch waits for the experts to be done with the chunk before the last.
void OpChain::experts(const ExpertSegment& segment, Phase phase, const std::string& label) {
  const ExpertLayer& layer = *build_.experts;
  const int place = build_.compiled.grid.expert_rank(global_), microbatch = at_.slot.microbatch;
  const ExpertCalls& calls = layer.calls(segment.experts.pass, place, at_.layer, microbatch);
  ExpertWork work = layer.work(segment.experts, place, at_.layer, microbatch);
  const int chunks = build_.workload.experts.chunks_of(at_.layer);
  const std::vector<OpId> before = tail_;
  std::vector<OpId> computed;
  OpId combined = no_op;
  for (int i = 0; i < chunks; ++i) {
    const std::string part = chunks == 1 ? label : label + " chunk " + std::to_string(i);
    if (!calls.dispatch.empty()) {
      std::vector<OpId> after = before;
      if (i >= 2) after.push_back(computed[static_cast<std::size_t>(i) - 2]);
      tail_ = {beside(calls.dispatch, std::move(after), Stream::ep_dispatch, part)};
    }
    work.again = true;
    if (layer.again(segment.experts)) compute(work, Phase::recompute, part + " experts again");
    work.again = false;
    const bool delays = delays_weights(build_.workload, segment.experts) && !calls.combine.empty();
    if (delays) work.what.weight_gradients = false;
    compute(work, phase, part + " experts");
    computed.push_back(tail_.front());
    if (!calls.combine.empty()) combined = beside(calls.combine, tail_, Stream::ep_combine, part);
    if (delays) {  // in the stream of computations, where the next one waits for it
      work.what = {Pass::backward_weight};
      compute(work, phase, part + " experts' weights");
    }
  }
  if (combined != no_op) tail_ = {combined};
}

// Ring attention (equation 21): the block for step i+1 travels while step i computes; a block is sent on when it has been received, and
// the send of step i+1 waits for step i's attention (two buffers).
void OpChain::ring(const RingSegment& segment, Phase phase, const std::string& label) {
  const int steps = build_.workload.parallel.cp;
  const Communication block = segment.ring.block();
  for (int i = 0; i < steps; ++i) {
    const std::vector<OpId> before = tail_;
    OpId sent = no_op;
    if (i + 1 < steps && build_.workload.overlap.cp) sent = beside(block, 1, before, label);
    paired(&segment, segment.ring.step, phase, label);
    if (i + 1 < steps && !build_.workload.overlap.cp) sent = beside(block, 1, tail_, label);
    if (sent != no_op) tail_.push_back(sent);
  }
}

}  // namespace rehearse::workloads
