// Requests out of a CSV file.
#pragma once

#include <vector>

#include "config/node.hpp"
#include "workloads/serving/request.hpp"

namespace rehearse::sim {

// The file that the scalar names, relative to the file it stands in. Its header is one of
//   arrival_s,input_tokens,output_tokens             seconds
//   TIMESTAMP,ContextTokens,GeneratedTokens          Azure's public traces: date and time
//   timestamp_ms,input_tokens,output_tokens,...      Mooncake's; block hashes are not read
//   num_prefill_tokens,num_decode_tokens             lengths alone
// Times start at 0 and must not fall; a length below 1 counts as 1 nowhere: it is refused at its line. Throws config::InputError.
[[nodiscard]] std::vector<workloads::Request> read_request_trace(const config::Node& path, bool needs_times);

}  // namespace rehearse::sim
