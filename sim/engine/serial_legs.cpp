#include "sim/engine/serial_legs.hpp"

#include <algorithm>
#include <optional>

namespace rehearse::sim {
namespace {

// Of each link the group whose plans alone load it, one after another.
class OnlyUsers {
 public:
  explicit OnlyUsers(const std::vector<PlanOfGroup>& plans) {
    for (const PlanOfGroup& its : plans) {
      for (const LinkIndex link : its.plan.links) {
        if (link >= users_.size()) users_.resize(link + 1UL);
        User& user = users_[link];
        user.shared = user.shared || !its.in_turn || user.group.value_or(its.group) != its.group;
        user.group = its.group;
      }
    }
  }
  [[nodiscard]] bool alone(LinkIndex link) const { return !users_[link].shared; }

 private:
  struct User {
    std::optional<std::uint32_t> group = {};
    bool shared = false;
  };
  std::vector<User> users_;
};

// Each leg waits for the one before, whatever else it waits for.
bool in_a_row(const CommPlan& plan) {
  for (std::uint32_t leg = 0; leg + 1 < plan.legs.size(); ++leg) {
    if (std::ranges::find(plan.released_by(plan.legs[leg]), leg + 1) == plan.released_by(plan.legs[leg]).end()) return false;
  }
  return true;
}

bool over_the_same_links(const CommPlan& plan) {
  const Leg* first = nullptr;
  for (const Leg& leg : plan.legs) {
    if (leg.bytes <= 0) continue;
    if (first == nullptr) first = &leg;
    if (!std::ranges::equal(plan.links_of(leg), plan.links_of(*first))) return false;
  }
  return true;
}

void join(CommPlan& plan) {
  Leg all;
  std::vector<LinkIndex> links;
  for (const Leg& leg : plan.legs) {
    all.delay_s += leg.delay_s * plan.repeat;
    all.bytes += leg.bytes * plan.repeat;
    if (leg.bytes > 0 && links.empty()) links.assign(plan.links_of(leg).begin(), plan.links_of(leg).end());
  }
  all.links = static_cast<std::uint32_t>(links.size());
  plan = {.legs = {all}, .links = std::move(links), .releases = {}, .host = plan.host, .repeat = 1};
}

}  // namespace

void join_serial_legs(std::vector<PlanOfGroup>& plans) {
  const OnlyUsers users(plans);
  for (auto& [plan, group, in_turn] : plans) {
    const bool alone = std::ranges::all_of(plan.links, [&](LinkIndex link) { return users.alone(link); });
    if (plan.legs.size() > 1 && alone && in_a_row(plan) && over_the_same_links(plan)) join(plan);
  }
}

}  // namespace rehearse::sim
