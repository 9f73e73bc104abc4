#include "fair_share.hpp"

#include <limits>

namespace rehearse::tests {
namespace {

struct Link {
  double left = 0;                 // capacity that flows with a settled rate leave
  int rising = 0;                  // crossings of flows that still rise
  std::vector<std::size_t> flows;  // all that cross it
};

constexpr double unlimited = std::numeric_limits<double>::infinity();

class Filling {
 public:
  Filling(const std::vector<const Load*>& flows, const std::vector<double>& link_rates)
      : flows_(flows), links_(link_rates.size()), rates_(flows.size(), unlimited) {
    for (std::size_t flow = 0; flow < flows.size(); ++flow) {
      for (const auto& [link, times] : *flows[flow]) {
        if (links_[link].flows.empty()) used_.push_back(link);
        links_[link].left = link_rates[link];
        links_[link].rising += times;
        links_[link].flows.push_back(flow);
      }
    }
  }

  std::vector<double> fill() {
    while (true) {
      double lowest = unlimited;
      for (const std::uint32_t link : used_) lowest = std::min(lowest, level(link));
      if (lowest == unlimited) return rates_;
      const double full = lowest * (1 + 1e-13);  // links that are full at once differ by rounding
      for (const std::uint32_t link : used_) {
        if (level(link) <= full) settle_flows_of(link, lowest);
      }
    }
  }

 private:
  // To which rising flows could go on a link.
  [[nodiscard]] double level(std::uint32_t link) const {
    return links_[link].rising > 0 ? std::max(0.0, links_[link].left) / links_[link].rising : unlimited;
  }

  void settle_flows_of(std::uint32_t link, double rate) {
    for (const std::size_t flow : links_[link].flows) {
      if (rates_[flow] != unlimited) continue;
      rates_[flow] = rate;
      for (const auto& [crossed, times] : *flows_[flow]) {
        links_[crossed].rising -= times;
        links_[crossed].left -= times * rate;
      }
    }
  }

  const std::vector<const Load*>& flows_;
  std::vector<Link> links_;
  std::vector<std::uint32_t> used_;
  std::vector<double> rates_;
};

}  // namespace

std::vector<double> fair_rates(const std::vector<const Load*>& flows, const std::vector<double>& link_rates) {
  return Filling(flows, link_rates).fill();
}

}  // namespace rehearse::tests
