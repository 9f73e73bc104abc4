// Requests out of a file.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "config/node.hpp"
#include "workloads/serving/prompt_blocks.hpp"
#include "workloads/serving/request.hpp"

namespace rehearse::sim {

struct RequestTrace {
  std::vector<workloads::Request> requests;               // times start at 0
  std::shared_ptr<const workloads::PromptBlocks> blocks;  // of the prompts, where they are asked for
  std::string note;                                       // what it has and nobody uses; "": nothing
};

// The file that the scalar names, relative to the file it stands in, packed by gzip or not. JSON lines, where it begins with an object:
//   {"timestamp": 27482, "input_length": 6955, "output_length": 52, "hash_ids": [46]}    Mooncake's, milliseconds
// else a table whose header is one of
//   arrival_s,input_tokens,output_tokens             seconds
//   TIMESTAMP,ContextTokens,GeneratedTokens          Azure's public traces: date and time
//   timestamp_ms,input_tokens,output_tokens,...      Mooncake's, milliseconds
//   num_prefill_tokens,num_decode_tokens             lengths alone
// Hashes of a prompt's blocks of 512 tokens, the last of which may be shorter, are `hash_ids` or the numbers in a column `blocks` or
// `block_hashes_of_512_tokens`. with_blocks: all requests must have them.
// Times must not fall; a length below 1 counts as 1 nowhere: it is refused at its line. Throws config::InputError.
[[nodiscard]] RequestTrace read_request_trace(const config::Node& path, bool needs_times, bool with_blocks);

// The same file as jobs in any folder may name it: ready-made lengths by their name, else its absolute path.
[[nodiscard]] std::string settled_requests(const config::Node& path);

}  // namespace rehearse::sim
