// The model and the plan of a job in Megatron-LM's arguments (core 0.16).
#pragma once

#include "sim/export/arguments.hpp"
#include "sim/job/job.hpp"

namespace rehearse::sim {

void write_megatron_model(const Job& job, Arguments& out);
void write_megatron_plan(const Job& job, Arguments& out);

}  // namespace rehearse::sim
