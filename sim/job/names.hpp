// The words by which a job calls its options.
#pragma once

#include "sim/job/job.hpp"
#include "workloads/names.hpp"

namespace rehearse::sim {

inline const workloads::Names<Granularity> granularities{
    {"stage", Granularity::stage}, {"layer", Granularity::layer}, {"operator", Granularity::op}};
inline const workloads::Names<Routing> routings{{"balanced", Routing::balanced}, {"ecmp", Routing::ecmp}};
inline const workloads::Names<Fidelity> fidelities{
    {"step", Fidelity::step}, {"ring", Fidelity::ring}, {"closed", Fidelity::closed}, {"auto", Fidelity::automatic}};
inline const workloads::Names<Solver> solvers{{"auto", Solver::automatic}, {"simgrid", Solver::simgrid}};
inline const workloads::Names<topology::Protocol> protocols{{"auto", topology::Protocol::automatic},
                                                            {"simple", topology::Protocol::simple},
                                                            {"ll", topology::Protocol::ll},
                                                            {"ll128", topology::Protocol::ll128}};
inline const workloads::Names<int> zero_stages{{"none", 0}, {"zero1", 1}, {"zero2", 2}, {"zero3", 3}};

}  // namespace rehearse::sim
