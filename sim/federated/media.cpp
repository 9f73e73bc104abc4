#include "sim/federated/media.hpp"

#include <algorithm>

namespace rehearse::federated {
namespace {

constexpr double per_second = 1e9;  // SimGrid counts whole parts of bytes

}  // namespace

Medium::Medium(sim::Machine& machine, Sharing sharing, std::size_t users) : machine_(machine), sharing_(sharing) {
  common_ = machine_.add_link(per_second);
  for (std::size_t user = 0; user < users; ++user) own_.push_back(machine_.add_link(per_second));
  own_share_.assign(users, 1);
}

double Medium::capacity(double share) const { return per_second * share / factor_; }

void Medium::start(const Use& use, sim::LinkIndex link, double weight) {
  machine_.transfer(use.host, use.host, {&link, 1}, use.seconds * per_second, use.token, weight);
}

void Medium::use(const Use& use) {
  if (use.alone || sharing_ == Sharing::reserved) {
    own_share_[use.token] = use.alone ? 1 : use.share;
    machine_.set_bandwidth(own_[use.token], capacity(own_share_[use.token]));
    start(use, own_[use.token], 1);
    return;
  }
  if (sharing_ == Sharing::weighted) return start(use, common_, use.share);
  if (served_) {
    queue_.push_back(use);
    return;
  }
  served_ = use.token;
  start(use, common_, 1);
}

void Medium::leave(sim::Token token) {
  if (sharing_ != Sharing::fifo) return;
  std::erase_if(queue_, [token](const Use& use) { return use.token == token; });
  if (served_ != token) return;
  served_.reset();
  if (queue_.empty()) return;
  const Use next = queue_.front();
  queue_.pop_front();
  served_ = next.token;
  start(next, common_, 1);
}

void Medium::slow_down(double factor) {
  factor_ = factor;
  machine_.set_bandwidth(common_, capacity(1));
  for (std::size_t user = 0; user < own_.size(); ++user) machine_.set_bandwidth(own_[user], capacity(own_share_[user]));
}

bool Medium::waits(sim::Token token) const {
  return std::ranges::any_of(queue_, [token](const Use& use) { return use.token == token; });
}

}  // namespace rehearse::federated
