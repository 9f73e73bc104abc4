// The highest rate at which a deployment keeps its promise, by bisection over simulations.
#pragma once

#include <functional>

#include "sim/serving/deployment.hpp"

namespace rehearse::sim {

// Requests a second, to a hundredth: the job's requests with all their times stretched or shortened alike. 0: not even at a millionth of
// the job's rate; infinite: even when they come nearly at once, so that there are too few of them to tell. Of a
// job that has a promise and times of arrival.
[[nodiscard]] double goodput_of(const ServingJob& job, const Deployment& deployment, const std::function<void(double)>& progress);

// Whether there is one to find: something is promised, and requests come at a rate.
[[nodiscard]] bool has_goodput(const ServingJob& job);

}  // namespace rehearse::sim
