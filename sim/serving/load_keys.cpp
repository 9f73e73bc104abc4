// Reading serving.load: how requests come and how long they are.
#include <algorithm>
#include <cmath>

#include "config/reference.hpp"
#include "sim/serving/pool_keys.hpp"
#include "sim/serving/request_trace.hpp"

namespace rehearse::sim {
namespace {

using config::Dimension;
using config::Node;
using config::Parameter;
using config::Shape;
using workloads::Arrivals;
using workloads::ArrivalSpec;
using workloads::LengthLaw;
using workloads::LengthSpec;
using workloads::LoadSpec;

constexpr int most_tokens = 100'000'000, most_requests = 100'000'000;
constexpr double least_rate = 1e-9;
// Of a load that does not say how many: enough for percentiles; of a closed loop so many of each client.
constexpr int usual_requests = 1000, usual_requests_per_client = 5;
constexpr double usual_warmup = 0.05;

const std::vector<std::string>& samplings() {
  static const std::vector<std::string> all{"greedy", "truncated"};
  return all;
}

const std::vector<std::string>& words() {
  static const std::vector<std::string> all{"at-once", "saturate"};
  return all;
}

// The one key that says which of several forms a mapping has.
std::string form_of(const Node& node, const std::vector<std::string>& forms) {
  std::string found;
  for (const std::string& key : node.keys()) {
    if (std::ranges::find(forms, key) == forms.end()) continue;
    if (!found.empty()) node.at(key).fail_at_key("there is '" + found + "' already");
    found = key;
  }
  if (found.empty()) {
    node.allow_keys(forms);
    node.fail(node.path() + " needs one of its forms", config::suggestion("", forms));
  }
  return found;
}

void take_trace(const Node& path, bool needs_times, bool with_blocks, LoadSpec& load) {
  RequestTrace trace = read_request_trace(path, needs_times, with_blocks);
  load.trace = std::make_shared<const std::vector<workloads::Request>>(std::move(trace.requests));
  load.trace_note = std::move(trace.note);
  load.blocks = std::move(trace.blocks);
}

ArrivalSpec read_arrivals(const Node& node, bool with_blocks, LoadSpec& load) {
  ArrivalSpec spec;
  if (!node.is_map()) {
    static_cast<void>(node.as_choice(words()));
    spec.kind = Arrivals::at_once;
    return spec;
  }
  const std::string form = form_of(node, {"poisson", "gamma", "constant", "closed", "trace"});
  const Node value = node.at(form);
  if (form == "closed") {
    node.allow_keys({"closed", "think"});
    spec.kind = Arrivals::closed;
    spec.clients = static_cast<int>(value.as_int(1, most_requests));
    if (const auto think = node.find("think")) spec.think_s = think->as_quantity(Dimension::time);
  } else if (form == "trace") {
    node.allow_keys({"trace", "speed"});
    spec.kind = Arrivals::trace;
    take_trace(value, true, with_blocks, load);
    if (const auto speed = node.find("speed")) spec.speed = speed->as_number(1e-6, 1e6);
  } else {
    node.allow_keys(form == "gamma" ? std::vector<std::string>{"gamma", "cv"} : std::vector<std::string>{form});
    spec.kind = form == "poisson" ? Arrivals::poisson : form == "gamma" ? Arrivals::gamma : Arrivals::constant;
    spec.rate_per_s = value.as_quantity(Dimension::rate);
    if (spec.rate_per_s < least_rate)
      value.fail(value.path() + " must be above 0 /s, not '" + value.as_string() + "'", "for requests at once write arrivals: at-once");
    if (form == "gamma") spec.variation = node.at("cv").as_number(0.01, 100);
  }
  return spec;
}

LengthSpec read_length(const Node& node, bool with_blocks, LoadSpec& load) {
  LengthSpec spec;
  if (!node.is_map()) {
    spec.low = spec.high = static_cast<int>(node.as_int(1, most_tokens));
    return spec;
  }
  const std::string form = form_of(node, {"uniform", "lognormal", "from"});
  const Node value = node.at(form);
  if (form == "uniform") {
    node.allow_keys({"uniform"});
    const std::vector<Node> ends = value.items();
    if (ends.size() != 2) value.fail("uniform takes the smallest and the largest length", "write for example {uniform: [819, 1024]}");
    spec.law = LengthLaw::uniform;
    spec.low = static_cast<int>(ends[0].as_int(1, most_tokens));
    spec.high = static_cast<int>(ends[1].as_int(spec.low, most_tokens));
  } else if (form == "lognormal") {
    node.allow_keys({"lognormal", "max"});
    value.allow_keys({"median", "p90"});
    spec.law = LengthLaw::lognormal;
    spec.median = value.at("median").as_number(1, most_tokens);
    spec.p90 = value.at("p90").as_number(spec.median, most_tokens);
    // Below the median most lengths would be cut.
    spec.high = static_cast<int>(node.at("max").as_int(static_cast<std::int64_t>(std::ceil(spec.median)), most_tokens));
  } else {
    node.allow_keys({"from"});
    spec.law = LengthLaw::table;
    if (value.is_scalar() && value.as_string() == "trace") {
      if (!load.trace) value.fail("there is no trace of arrivals to take lengths from", "name a file, or write arrivals: {trace: FILE}");
    } else {
      if (load.trace) value.fail("lengths come from one trace alone", "write {from: trace}");
      take_trace(value, false, with_blocks, load);
    }
  }
  return spec;
}

// Lengths that are left out are the trace's.
LengthSpec length_or_trace(const Node& node, const char* key, bool with_blocks, LoadSpec& load) {
  if (!node.find(key) && load.arrivals.kind == Arrivals::trace) {
    LengthSpec spec;
    spec.law = LengthLaw::table;
    return spec;
  }
  return read_length(node.at(key), with_blocks, load);
}

int usual_count(const LoadSpec& load) {
  if (load.arrivals.kind == Arrivals::closed) return std::min(most_requests, load.arrivals.clients * usual_requests_per_client);
  return load.arrivals.kind == Arrivals::trace ? static_cast<int>(load.trace->size()) : usual_requests;
}

// So many as come in this time, on average.
int count_in(const Node& node, const LoadSpec& load) {
  if (load.arrivals.rate_per_s <= 0) node.fail_at_key("a time needs arrivals at a rate", "give the number of requests instead");
  const double count = std::round(node.as_quantity(Dimension::time) * load.arrivals.rate_per_s);
  if (count < 1 || count > most_requests) node.fail("that is not between 1 and 10^8 requests");
  return static_cast<int>(count);
}

}  // namespace

LoadSpec read_load(const Node& node, bool with_blocks) {
  node.allow_keys({"arrivals", "input", "output", "sampling", "requests", "time", "warmup"});
  LoadSpec load;
  load.arrivals = read_arrivals(node.at("arrivals"), with_blocks, load);
  load.input = length_or_trace(node, "input", with_blocks, load);
  load.output = length_or_trace(node, "output", false, load);
  if (const auto sampling = node.find("sampling")) load.truncated = sampling->as_choice(samplings()) == "truncated";
  load.requests = usual_count(load);
  const auto time = node.find("time"), requests = node.find("requests");
  if (time && requests) {
    time->fail_at_key("the length of a load is given by requests or by time, not both",
                      "take the other away: --set serving.load.requests=null");
  }
  if (requests) load.requests = static_cast<int>(requests->as_int(1, most_requests));
  if (time) load.requests = count_in(*time, load);
  if (load.arrivals.kind == Arrivals::trace && load.requests > static_cast<int>(load.trace->size())) {
    (requests ? *requests : node).fail("the trace has " + std::to_string(load.trace->size()) + " requests");
  }
  const bool starts_full = load.arrivals.kind == Arrivals::at_once || load.arrivals.kind == Arrivals::trace;
  load.warmup = starts_full ? 0 : static_cast<int>(load.requests * usual_warmup);
  if (const auto warmup = node.find("warmup")) load.warmup = static_cast<int>(warmup->as_int(0, load.requests - 1));
  return load;
}

Shape load_shape() {
  const auto map = [](std::vector<Parameter> keys) { return Shape{.kind = Shape::Kind::mapping, .keys = std::move(keys)}; };
  const auto plain = [](Shape::Kind kind) { return Shape{.kind = kind}; };
  const Shape rate{.kind = Shape::Kind::quantity, .dimension = Dimension::rate}, time{.kind = Shape::Kind::quantity};
  const Shape count = config::whole(1, most_requests).shape, text = plain(Shape::Kind::text), number = plain(Shape::Kind::number);
  const Shape arrivals = config::either(
      {config::word(words()).shape, map({{"poisson", rate, true, "", "Exponential gaps."}}),
       map({{"gamma", rate, true, "", "Gamma-distributed gaps."}, {"cv", number, true, "", "Their standard deviation over their mean."}}),
       map({{"constant", rate, true, "", "Equal gaps."}}),
       map({{"closed", count, true, "", "So many clients, each with one request at a time."},
            {"think", time, false, "0 s", "Between them."}}),
       map({{"trace", text, true, "", "A CSV file or JSON lines."}, {"speed", number, false, "1", "Times are divided by it."}})});
  const Shape length = config::either(
      {count, map({{"uniform", {.kind = Shape::Kind::list, .parts = {count}}, true, "", "Smallest and largest."}}),
       map({{"lognormal",
             map({{"median", number, true, "", "Half of them are shorter."}, {"p90", number, true, "", "Nine in ten are shorter."}}), true,
             "", "Cut at max."},
            {"max", count, true, "", "The largest."}}),
       map({{"from", text, true, "",
             "`trace`, a file with lengths, or ready-made ones: azure-conversation, azure-code, mooncake-conversation, "
             "mooncake-conversation-prefixes, mooncake-synthetic."}})});
  return map(
      {{"arrivals", arrivals, true, "", "When requests come."},
       {"input", length, false, "the trace's", "Tokens of a prompt."},
       {"output", length, false, "the trace's", "Tokens of an answer."},
       {"sampling", config::word(samplings()).shape, false, "greedy", "How tokens are chosen: truncated by top-p or top-k, for example."},
       {"requests", count, false, "1000, 5 for each client, or the trace's", "How many."},
       {"time", time, false, "", "As many as come in it on average, instead."},
       {"warmup", config::whole(0, most_requests).shape, false, "5 %, none of a trace or at once", "The first, which do not count."}});
}

}  // namespace rehearse::sim
