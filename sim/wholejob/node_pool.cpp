#include "sim/wholejob/node_pool.hpp"

namespace rehearse::sim {

void NodePool::replace(int nodes) {
  if (spares_) missing_ += nodes;
}

void NodePool::leave_out(const std::vector<int>& places) { left_out_.insert(places.begin(), places.end()); }

void NodePool::fill() {
  if (!spares_) return;
  *spares_ -= missing_;
  missing_ = 0;
}

bool NodePool::take_back() {
  in_repair_.pop();
  if (missing_ > 0 || left_out_.empty()) {
    ++*spares_;
    return false;
  }
  returning_.insert(*left_out_.begin());
  left_out_.erase(left_out_.begin());
  return true;
}

std::set<int> NodePool::out() const {
  std::set<int> all = left_out_;
  all.insert(returning_.begin(), returning_.end());
  return all;
}

}  // namespace rehearse::sim
