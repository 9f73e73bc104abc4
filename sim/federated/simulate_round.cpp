#include "sim/federated/simulate_round.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "sim/engine/child_process.hpp"
#include "sim/federated/alike_devices.hpp"
#include "sim/federated/media.hpp"
#include "sim/federated/packed_round.hpp"
#include "sim/federated/programs.hpp"
#include "sim/federated/slow_spells.hpp"
#include "sim/federated/total_power.hpp"

namespace rehearse::federated {
namespace {

using sim::Token;

// What else than the classes' operations ends on the machine.
constexpr Token joint_tokens = Token{1} << 40U, control_tokens = Token{1} << 41U;
enum Control : Token { deadline_passes, server_fails, first_leaving };

class Round {
 public:
  Round(const Job& job, const Plan& plan, const Conditions& conditions, const SimulateOptions& options)
      : job_(job),
        plan_(plan),
        conditions_(conditions),
        options_(options),
        alike_(alike_devices(job, plan, conditions)),
        programs_(RoundBuilderRegistry::get(builder_name(job.settings.server.mode)).build(job, plan, alike_.representative)),
        machine_(job.settings.solver),
        uplink_(machine_, job.settings.radio.sharing, classes()),
        downlink_(machine_, job.settings.radio.sharing, job.one_band() ? 0 : classes()),
        server_(machine_, job.settings.server.mode == ServerMode::sequential ? Sharing::fifo : job.settings.server.sharing, classes()),
        spells_(conditions.slow, alike_.representative) {
    whole_server_ = machine_.add_link(1e9);
    whole_downlink_ = machine_.add_link(1e9);
    for (std::size_t c = 0; c < classes(); ++c) static_cast<void>(machine_.add_host(spells_.speeds(c)));
    machine_.seal();
    state_.resize(classes());
    joints_.resize(programs_.joints.size());
    for (const auto& program : programs_.of) {
      for (const Operation& operation : program) {
        if (operation.where == Where::joint) ++joints_[operation.joint].expected;
      }
      operations_ += program.size();
    }
  }

  SimulatedRound run() {
    announce();
    machine_.after(0, control_tokens + first_leaving + classes());  // all begin at 0
    machine_.run([this](Token token) { ended(token); });
    return result();
  }

 private:
  struct State {
    std::size_t next = 0;  // operation under way
    double since_s = 0;
    double end_s = 0;
    bool gone = false, finished = false;
    Phases phases;
  };
  struct Meeting {
    std::size_t expected = 0;
    bool complete = false;
    double complete_s = 0;
    std::vector<std::size_t> here;
  };

  [[nodiscard]] std::size_t classes() const { return alike_.representative.size(); }
  [[nodiscard]] double members(std::size_t c) const { return static_cast<double>(alike_.members[c]); }

  // What is known beforehand to happen.
  void announce() {
    const auto at = [&](double time_s, Token control) {
      if (time_s < never) machine_.after(time_s, control_tokens + control);
    };
    at(conditions_.deadline_s, deadline_passes);
    at(conditions_.server_fails_at_s, server_fails);
    for (std::size_t c = 0; c < classes() && !conditions_.leaves_at_s.empty(); ++c) {
      at(conditions_.leaves_at_s[alike_.representative[c]], first_leaving + c);
    }
    for (std::size_t i = 0; i < spells_.changes().size(); ++i) at(spells_.changes()[i].at_s, first_leaving + classes() + 1 + i);
  }

  void ended(Token token) {
    if (over_) return;
    if (token >= control_tokens) return control(token - control_tokens);
    if (token >= joint_tokens) return part(token - joint_tokens);
    const auto c = static_cast<std::size_t>(token);
    if (state_[c].gone) return;
    book(c, programs_.of[c][state_[c].next]);
    go_on(c);
  }

  void control(Token what) {
    if (what == deadline_passes || what == server_fails) {
      lost_ = what == server_fails;
      return end_round();
    }
    const std::size_t which = what - first_leaving;
    if (which < classes()) return leave(which);
    if (which > classes()) return change(spells_.changes()[which - classes() - 1]);
    for (std::size_t c = 0; c < classes(); ++c) begin(c);
  }

  void change(const SpeedChange& change) {
    switch (change.what) {
      case SlowSpell::What::device:
        return machine_.set_speed(static_cast<sim::HostIndex>(change.of_class), change.speed);
      case SlowSpell::What::uplink:
        if (job_.one_band()) machine_.set_bandwidth(whole_downlink_, 1e9 / change.factor);
        return uplink_.slow_down(change.factor);
      case SlowSpell::What::downlink:
        machine_.set_bandwidth(whole_downlink_, 1e9 / change.factor);
        return (job_.one_band() ? uplink_ : downlink_).slow_down(change.factor);
      case SlowSpell::What::server:
        server_.slow_down(change.factor);
        server_factor_ = change.factor;
        machine_.set_bandwidth(whole_server_, 1e9 / change.factor);
    }
  }

  // The time since the operation began is booked, and its resource is left.
  void book(std::size_t c, const Operation& operation) {
    State& state = state_[c];
    const double now_s = machine_.now();
    state.phases[operation.phase] += now_s - state.since_s;
    if (options_.spans && now_s > state.since_s)
      spans_.push_back({static_cast<std::uint32_t>(alike_.representative[c]), operation.phase, state.since_s, now_s});
    if (Medium* medium = medium_of(operation.where)) {
      medium->leave(c);
      if (operation.where == Where::server || !has_own_link(c)) used(operation.where).busy_s += operation.seconds * members(c);
      queue_s_ += waited(c, operation);
    }
    if (options_.progress && ++booked_ % 65536 == 0) options_.progress(static_cast<double>(booked_) / static_cast<double>(operations_));
  }
  // One at a time: what is beyond the operation's own seconds was spent in the queue.
  [[nodiscard]] double waited(std::size_t c, const Operation& operation) const {
    const bool queue = operation.where == Where::server
                           ? job_.settings.server.mode == ServerMode::sequential || job_.settings.server.sharing == Sharing::fifo
                           : job_.settings.radio.sharing == Sharing::fifo;
    return queue ? std::max(0.0, machine_.now() - state_[c].since_s - operation.seconds) : 0;
  }

  [[nodiscard]] bool has_own_link(std::size_t c) const {
    return job_.settings.entries[job_.devices[alike_.representative[c]].entry].dedicated;
  }

  void go_on(std::size_t c) {
    ++state_[c].next;
    begin(c);
  }

  void begin(std::size_t c) {
    State& state = state_[c];
    state.since_s = machine_.now();
    if (state.next == programs_.of[c].size()) return finish(c);
    const Operation& operation = programs_.of[c][state.next];
    if (operation.where == Where::device) return machine_.compute(static_cast<sim::HostIndex>(c), operation.seconds, c);
    if (operation.where == Where::delay) return machine_.after(operation.seconds, c);
    if (operation.where == Where::joint) return arrive(c, operation.joint);
    medium_of(operation.where)->use(use_of(c, operation));
  }

  [[nodiscard]] Medium::Use use_of(std::size_t c, const Operation& operation) const {
    const Device& device = job_.devices[alike_.representative[c]];
    const bool link = operation.where != Where::server;
    const bool weighted = (link ? job_.settings.radio.sharing : job_.settings.server.sharing) == Sharing::weighted;
    Medium::Use use{.host = static_cast<sim::HostIndex>(c), .seconds = operation.seconds, .share = operation.share, .token = c};
    use.alone = link && has_own_link(c);
    if (operation.where == Where::uplink) use.share = uplink_part(job_, device, operation.share);
    if (weighted && !use.alone) {
      use.seconds *= members(c);
      use.share *= members(c) * static_cast<double>(job_.devices.size());  // around 1
    }
    return use;
  }

  void arrive(std::size_t c, std::uint32_t joint) {
    joints_[joint].here.push_back(c);
    meet(joint);
  }
  void meet(std::uint32_t joint) {
    Meeting& meeting = joints_[joint];
    if (meeting.complete || meeting.here.size() < meeting.expected || meeting.here.empty()) return;
    meeting.complete = true;
    meeting.complete_s = machine_.now();
    const Joint& waits = programs_.joints[joint];
    const sim::LinkIndex* whole = waits.where == Where::server ? &whole_server_ : &whole_downlink_;
    machine_.transfer(0, 0, {whole, 1}, std::max(waits.seconds, 0.0) * 1e9, joint_tokens + joint);
  }
  void part(Token joint) {
    Meeting& meeting = joints_[joint];
    const std::vector<std::size_t> here = std::move(meeting.here);
    const Joint& waited = programs_.joints[joint];
    used(waited.where).busy_s += waited.seconds;
    for (const std::size_t c : here) {
      if (state_[c].gone) continue;
      State& state = state_[c];
      const Phase phase = programs_.of[c][state.next].phase;
      state.phases[Phase::waiting] += meeting.complete_s - state.since_s;
      state.phases[phase] += machine_.now() - meeting.complete_s;
      if (options_.spans && machine_.now() > meeting.complete_s)
        spans_.push_back({static_cast<std::uint32_t>(alike_.representative[c]), phase, meeting.complete_s, machine_.now()});
      go_on(c);
    }
  }

  void finish(std::size_t c) {
    state_[c].finished = true;
    state_[c].end_s = machine_.now();
    finished_ += alike_.members[c];
    if (conditions_.enough > 0 && finished_ >= conditions_.enough) return end_round();
    end_when_nobody_is_left();
  }
  void end_when_nobody_is_left() {
    const bool left = std::ranges::any_of(state_, [](const State& state) { return !state.finished && !state.gone; });
    if (!left) end_round();
  }

  // It stops, frees what it holds, and is waited for no longer.
  void leave(std::size_t c) {
    State& state = state_[c];
    if (state.finished || state.gone) return;
    interrupt(c);
    state.gone = true;
    machine_.halt([c](Token token) { return token == c; });
    const std::vector<Operation>& program = programs_.of[c];
    if (Medium* medium = medium_of(program[state.next].where)) medium->leave(c);
    for (std::size_t i = state.next; i < program.size(); ++i) {
      if (program[i].where == Where::joint) miss(c, program[i].joint);
    }
    end_when_nobody_is_left();
  }
  void miss(std::size_t c, std::uint32_t joint) {
    --joints_[joint].expected;
    std::erase(joints_[joint].here, c);
    meet(joint);
  }

  // Books what is under way as far as it has come.
  void interrupt(std::size_t c) {
    State& state = state_[c];
    state.end_s = machine_.now();
    const Operation& operation = programs_.of[c][state.next];
    const Phase phase = operation.where == Where::joint ? Phase::waiting : operation.phase;
    state.phases[phase] += machine_.now() - state.since_s;
    if (options_.spans) spans_.push_back({static_cast<std::uint32_t>(alike_.representative[c]), phase, state.since_s, machine_.now()});
  }

  void end_round() {
    over_ = true;
    end_s_ = machine_.now();
    for (std::size_t c = 0; c < classes(); ++c) {
      if (!state_[c].finished && !state_[c].gone) interrupt(c);
    }
    machine_.halt([](Token) { return true; });
  }

  [[nodiscard]] Medium* medium_of(Where where) {
    if (where == Where::server) return &server_;
    if (where == Where::uplink || (where == Where::downlink && job_.one_band())) return &uplink_;
    return where == Where::downlink ? &downlink_ : nullptr;
  }
  [[nodiscard]] ResourceUse& used(Where where) {
    if (where == Where::server) return server_use_;
    return where == Where::uplink || job_.one_band() ? uplink_use_ : downlink_use_;
  }

  SimulatedRound result() {
    SimulatedRound out;
    RoundResult& round = out.result;
    round.method = "simulated";
    round.aggregation_s = lost_ ? 0 : job_.aggregation_s(finished_) * server_factor_;
    round.round_s = end_s_ + round.aggregation_s;
    round.simulated = classes();
    round.uplink = uplink_use_;
    round.downlink = downlink_use_;
    round.server = server_use_;
    round.server.busy_s += round.aggregation_s;
    for (std::size_t n = 0; n < job_.devices.size(); ++n) add_device(n, round);
    out.queue_s = queue_s_;
    out.lost = lost_;
    out.spans = std::move(spans_);
    for (const std::size_t c : alike_.class_of) out.stands_for.push_back(alike_.representative[c]);
    return out;
  }
  void add_device(std::size_t n, RoundResult& round) const {
    const State& state = state_[alike_.class_of[n]];
    DeviceRound device{.end_s = state.end_s, .phases = state.phases};
    device.fate = state.finished ? Fate::finished : state.gone ? Fate::dropped : Fate::late;
    if (!state.gone) {
      device.phases[Phase::waiting] += end_s_ - state.end_s;
      device.phases[Phase::aggregation] = round.aggregation_s;
    }
    round.devices.push_back(device);
    const LinkShares& share = plan_.share[n];
    if (!job_.settings.entries[job_.devices[n].entry].dedicated) {
      round.uplink.reserved_s += share.uplink * round.round_s;
      (job_.one_band() ? round.uplink : round.downlink).reserved_s += share.downlink * round.round_s;
    }
    round.server.reserved_s += share.server * round.round_s;
  }

  const Job& job_;
  const Plan& plan_;
  const Conditions& conditions_;
  const SimulateOptions& options_;
  AlikeDevices alike_;
  Programs programs_;
  sim::Machine machine_;
  Medium uplink_, downlink_, server_;
  SlowSpells spells_;
  sim::LinkIndex whole_server_ = 0, whole_downlink_ = 0;  // for all devices at once
  std::vector<State> state_;
  std::vector<Meeting> joints_;
  ResourceUse uplink_use_, downlink_use_, server_use_;
  std::vector<Span> spans_;
  std::size_t finished_ = 0, operations_ = 0, booked_ = 0;
  double queue_s_ = 0, end_s_ = 0, server_factor_ = 1;
  bool over_ = false, lost_ = false;
};

void refuse_too_many(const Job& job, const AlikeDevices& alike) {
  constexpr std::size_t most = 10'000;
  const bool shared_in_time = job.settings.radio.sharing != Sharing::reserved || job.settings.server.sharing != Sharing::reserved ||
                              job.settings.server.mode != ServerMode::per_device;
  if (!shared_in_time || alike.representative.size() <= most) return;
  throw config::InputError(
      fmt::format("{} devices would share the media at the same time; {} can be simulated", alike.representative.size(), most),
      "with sharing: reserved devices do not touch each other and any number can; predict and tune take any number too");
}

}  // namespace

SimulatedRound simulate_round(const Job& job, const Plan& plan, const Conditions& conditions, const SimulateOptions& options) {
  refuse_too_many(job, alike_devices(job, plan, conditions));
  if (job.settings.solver == sim::Solver::automatic) return Round(job, plan, conditions, options).run();
  // SimGrid allows one simulation per process.
  sim::load(job.settings.solver);
  return unpacked(sim::run_in_child([&] { return packed(Round(job, plan, conditions, {}).run()); }), job.devices.size());
}

}  // namespace rehearse::federated
