// Inside of Fabric, for the files that implement it.
#pragma once

#include <memory>
#include <utility>

#include "topology/plan.hpp"
#include "topology/router.hpp"

namespace rehearse::topology {

struct Fabric::Impl {
  Impl(std::shared_ptr<const Plan> shared_plan, Mask failed) : plan(std::move(shared_plan)), mask(std::move(failed)), router(*plan, mask) {}
  Impl(const Impl&) = delete;  // the router refers to plan and mask
  Impl& operator=(const Impl&) = delete;
  ~Impl() = default;

  std::shared_ptr<const Plan> plan;
  Mask mask;
  mutable Router router;
};

}  // namespace rehearse::topology
