#include "sim/federated/batched.hpp"

#include "sim/federated/programs.hpp"

namespace rehearse::federated {
namespace {

class BatchedWriter {
 public:
  BatchedWriter(const Job& job, const Plan& plan) : job_(job), plan_(plan), round_(batched_round(job, plan.cuts)) {
    out_.of.resize(plan.cuts.size());
  }

  Programs programs() {
    transfer_models(Phase::model, Where::downlink, round_.model_down, &RoundLoad::model_down_s);
    join();
    if (round_.batches.empty()) train_alone();
    for (const BatchedBatch& batch : round_.batches) {
      for (std::int64_t k = 0; k < batch.times; ++k) write(batch);
    }
    transfer_models(Phase::model, Where::uplink, round_.model_up, &RoundLoad::model_up_s);
    return std::move(out_);
  }

 private:
  void add(std::size_t device, Phase phase, Where where, double seconds, double share) {
    if (seconds > 0) out_.of[device].push_back({.phase = phase, .where = where, .seconds = seconds, .share = share});
  }
  [[nodiscard]] RoundLoad load(std::size_t device) const { return load_of(job_, job_.devices[device], plan_.cuts[device]); }
  [[nodiscard]] double latency_s(std::size_t device) const { return job_.devices[device].latency_s; }

  void transfer_models(Phase phase, Where where, const JointTransfer& transfer, double RoundLoad::*seconds) {
    for (std::size_t n = 0; n < out_.of.size(); ++n) {
      add(n, Phase::latency, Where::delay, latency_s(n), 0);
      add(n, phase, where, load(n).*seconds, transfer.share[n]);
    }
  }

  // All wait for all.
  void join() {
    for (std::vector<Operation>& program : out_.of) add_joint(program, Phase::waiting);
    out_.joints.push_back({});
  }
  // And then for the server or a broadcast; whoever has no such batch just waits.
  void join(const BatchedBatch& batch, Where where, double seconds) {
    const Phase phase = where == Where::server ? Phase::server : Phase::downlink;
    for (std::size_t n = 0; n < out_.of.size(); ++n) add_joint(out_.of[n], batch.part[n] > 0 ? phase : Phase::waiting);
    out_.joints.push_back({where, seconds});
  }
  void add_joint(std::vector<Operation>& program, Phase phase) const {
    program.push_back({.phase = phase, .where = Where::joint, .joint = static_cast<std::uint32_t>(out_.joints.size())});
  }

  void train_alone() {
    for (std::size_t n = 0; n < out_.of.size(); ++n) {
      add(n, Phase::forward, Where::device, load(n).forward_s, 0);
      add(n, Phase::backward, Where::device, load(n).backward_s, 0);
    }
    join();
  }

  void write(const BatchedBatch& batch) {
    for (std::size_t n = 0; n < out_.of.size(); ++n) {
      const double part = batch.part[n];
      if (part == 0) continue;
      add(n, Phase::forward, Where::device, part * load(n).forward_s, 0);
      add(n, Phase::latency, Where::delay, latency_s(n), 0);
      add(n, Phase::uplink, Where::uplink, part * load(n).uplink_s, batch.up.share[n]);
    }
    join(batch, Where::server, batch.server_s);
    if (batch.broadcast_s > 0) join(batch, Where::downlink, batch.broadcast_s);
    for (std::size_t n = 0; n < out_.of.size(); ++n) {
      const double part = batch.part[n];
      if (part == 0) continue;
      add(n, Phase::latency, Where::delay, latency_s(n), 0);
      if (batch.broadcast_s == 0) add(n, Phase::downlink, Where::downlink, part * load(n).downlink_s, batch.down.share[n]);
      add(n, Phase::backward, Where::device, part * load(n).backward_s, 0);
    }
    join();
  }

  const Job& job_;
  const Plan& plan_;
  BatchedRound round_;
  Programs out_;
};

class Batched final : public RoundBuilder {
 public:
  [[nodiscard]] Programs build(const Job& job, const Plan& plan, const std::vector<std::size_t>& /*devices*/) const override {
    return BatchedWriter(job, plan).programs();  // a joint is of all
  }
};
const RoundBuilderRegistry::Registration<Batched> batched_registration("batched");

}  // namespace
}  // namespace rehearse::federated
