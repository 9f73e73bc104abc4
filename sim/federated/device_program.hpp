// The operations of one device by itself, batch after batch.
#pragma once

#include "sim/federated/programs.hpp"

namespace rehearse::federated {

[[nodiscard]] std::vector<Operation> device_program(const Job& job, const Plan& plan, std::size_t device);

}  // namespace rehearse::federated
