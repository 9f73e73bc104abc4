#include "sim/engine/machine.hpp"

#include "sim/engine/machine_impl.hpp"

namespace rehearse::sim {

Machine::Machine(Solver solver) : impl_(solver == Solver::simgrid ? simgrid_machine() : event_machine()) {}
Machine::~Machine() = default;

HostIndex Machine::add_host(std::span<const double> speeds) { return impl_->add_host(speeds); }
LinkIndex Machine::add_link(double bytes_per_s) { return impl_->add_link(bytes_per_s); }
void Machine::divide(std::span<const AreaIndex> area_of_host, unsigned threads) { impl_->divide(area_of_host, threads); }
std::size_t Machine::lanes() const { return impl_->lanes(); }
std::size_t Machine::lane_of(AreaIndex area) const { return impl_->lane_of(area); }
void Machine::seal() { impl_->seal(); }
void Machine::compute(HostIndex host, double seconds, Token token) { impl_->compute(host, seconds, token); }
void Machine::transfer(HostIndex from, HostIndex to, std::span<const LinkIndex> links, double bytes, Token token, double weight,
                       AreaIndex area) {
  impl_->transfer(from, to, links, bytes, token, weight, area);
}
void Machine::after(double delay_s, Token token, AreaIndex area) { impl_->after(delay_s, token, area); }
void Machine::halt(const std::function<bool(Token)>& chosen) { impl_->halt(chosen); }
void Machine::set_speed(HostIndex host, std::size_t which) { impl_->set_speed(host, which); }
void Machine::set_bandwidth(LinkIndex link, double bytes_per_s) { impl_->set_bandwidth(link, bytes_per_s); }
double Machine::now() const { return impl_->now(); }
double Machine::next_s(AreaIndex area) const { return impl_->next_s(area); }
double Machine::quiet_until_s() const { return impl_->quiet_until_s(); }
void Machine::run(const std::function<void(Token)>& on_done, Ahead* ahead) { impl_->run(on_done, ahead); }

}  // namespace rehearse::sim
