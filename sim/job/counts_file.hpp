// Where tokens went, as counted: rows of step, layer, micro-batch, expert and tokens, with the sender before the expert or without.
#pragma once

#include "config/node.hpp"
#include "workloads/plan.hpp"

namespace rehearse::sim {

// Appends the rows to experts.counts; rows that name senders make experts.senders `own`. What is wrong is refused where it stands.
void read_counts_file(const config::Node& reference, workloads::ExpertPlan& experts);  // of the CSV file that a scalar names
void read_counts_here(const config::Node& counts, workloads::ExpertPlan& experts);     // of a list of lists

// The titles of a file whose rows name senders.
[[nodiscard]] const char* titles_by_sender();

}  // namespace rehearse::sim
