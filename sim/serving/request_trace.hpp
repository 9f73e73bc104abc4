// Requests out of a file.
#pragma once

#include <string>
#include <vector>

#include "config/node.hpp"
#include "workloads/serving/request.hpp"

namespace rehearse::sim {

struct RequestTrace {
  std::vector<workloads::Request> requests;  // times start at 0
  std::string note;                          // what it has and nobody uses; "": nothing
};

// The file that the scalar names, relative to the file it stands in, packed by gzip or not. JSON lines, where it begins with an object:
//   {"timestamp": 27482, "input_length": 6955, "output_length": 52, "hash_ids": [46]}    Mooncake's, milliseconds
// else a table whose header is one of
//   arrival_s,input_tokens,output_tokens             seconds
//   TIMESTAMP,ContextTokens,GeneratedTokens          Azure's public traces: date and time
//   timestamp_ms,input_tokens,output_tokens,...      Mooncake's; block hashes are not read
//   num_prefill_tokens,num_decode_tokens             lengths alone
// Times must not fall; a length below 1 counts as 1 nowhere: it is refused at its line. Throws config::InputError.
[[nodiscard]] RequestTrace read_request_trace(const config::Node& path, bool needs_times);

}  // namespace rehearse::sim
