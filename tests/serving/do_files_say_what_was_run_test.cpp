// What `simulate`, `predict` and `tune` of a serving job write: result.json, tables, timeline and page, against each other.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "config/node.hpp"
#include "deployments.hpp"
#include "sim/kind/job_kind.hpp"
#include "sim/report/page/page.hpp"
#include "sim/report/reporter.hpp"

namespace rehearse::tests {
namespace {

using nlohmann::json;

// The report of a command, as its files.
class TheFiles : public ::testing::Test {
 protected:
  static sim::KindAnswer answer_of(const std::string& command, const std::string& job,
                                   const std::map<std::string, std::vector<std::string>>& options = {}) {
    sim::KindRequest request;
    request.name = "job";
    request.document = config::Node::load_text(job, "job.yaml");
    request.options = options;
    request.writes_files = true;
    request.progress = [](double) {};
    return sim::JobKindRegistry::get("serving").answer(command, request);
  }
  static std::map<std::string, std::string> files(const std::string& job,
                                                  const std::map<std::string, std::vector<std::string>>& options = {}) {
    return files(answer_of("simulate", job, options));
  }
  static std::map<std::string, std::string> files(const sim::KindAnswer& answer) {
    std::map<std::string, std::string> out;
    for (const std::string& name : sim::ReporterRegistry::names()) {
      const sim::Reporter& reporter = sim::ReporterRegistry::get(name);
      if (reporter.file_name().empty() || !reporter.applies(answer.report)) continue;
      std::ostringstream text;
      reporter.write(answer.report, text);
      out[std::string(reporter.file_name())] = text.str();
    }
    return out;
  }
  // Columns by their titles.
  static std::vector<std::map<std::string, std::string>> rows(const std::string& csv) {
    std::istringstream lines(csv);
    std::string line, cell;
    std::vector<std::string> titles;
    std::vector<std::map<std::string, std::string>> out;
    while (std::getline(lines, line)) {
      std::istringstream cells(line);
      std::size_t column = 0;
      if (titles.empty()) {
        while (std::getline(cells, cell, ',')) titles.push_back(cell);
        continue;
      }
      out.emplace_back();
      while (std::getline(cells, cell, ',')) out.back()[titles.at(column++)] = cell;
    }
    return out;
  }
  static double sum(const std::vector<std::map<std::string, std::string>>& of, const std::string& column,
                    const std::function<bool(const std::map<std::string, std::string>&)>& counts = {}) {
    double total = 0;
    for (const auto& row : of) total += !counts || counts(row) ? std::stod(row.at(column)) : 0;
    return total;
  }
  static constexpr const char* apart =
      "model: llama3-8b\n"
      "cluster: dgx-h100-ndr400\n"
      "software: vllm\n"
      "serving:\n"
      "  pools:\n"
      "    prefill: {role: prefill, instances: 8, parallel: {tp: 1}, precision: {compute: bf16, weights: bf16, kv: bf16}}\n"
      "    decode: {role: decode, instances: 4, parallel: {tp: 2}, precision: {compute: bf16, weights: bf16, kv: bf16}}\n"
      "  load: {arrivals: {poisson: 40 /s}, input: {uniform: [100, 4000]}, output: {uniform: [1, 200]}, requests: 600}\n";
};

// llama3-8b in 16 bits: 131,072 bytes a token, whole pages of 16.
TEST_F(TheFiles, say_that_links_carry_the_caches) {
  const auto all = files(apart);
  const auto requests = rows(all.at("requests.csv")), links = rows(all.at("links.csv"));
  double expected = 0;
  for (const auto& request : requests) expected += 131'072.0 * 16 * std::ceil(std::stod(request.at("input_tokens")) / 16);
  EXPECT_NEAR(sum(requests, "kv_bytes"), expected, 1e-9 * expected);
  // Between two nodes: what leaves the ports of the first is what comes in at those of the second, and is everything.
  const auto node = [](const std::string& of, const std::string& at) {
    return [=](const std::map<std::string, std::string>& row) {
      return row.at(at).find(of) == 0 && row.at(at).find("nic") != std::string::npos &&
             row.at(at == "from" ? "to" : "from").find("leaf") == 0;
    };
  };
  EXPECT_NEAR(sum(links, "bytes", node("node0/", "from")), expected, 1e-9 * expected);
  EXPECT_NEAR(sum(links, "bytes", node("node1/", "to")), expected, 1e-9 * expected);
  for (const auto& link : links) {
    EXPECT_LE(std::stod(link.at("utilisation")), std::stod(link.at("busy")));
    EXPECT_LE(std::stod(link.at("busy")), 1);
    EXPECT_GE(std::stoi(link.at("at_once_at_most")), 1);
  }
}

TEST_F(TheFiles, say_what_instances_hold) {
  const auto all = files(apart);
  const auto requests = rows(all.at("requests.csv")), occupancy = rows(all.at("occupancy.csv"));
  double running = 0;
  std::map<std::string, double> ends;
  for (const auto& row : occupancy) {
    const double from_s = std::stod(row.at("from_s")), to_s = std::stod(row.at("to_s"));
    EXPECT_NEAR(from_s, ends[row.at("instance")], 1e-12 * to_s);  // rows follow one another from 0 on
    ends[row.at("instance")] = to_s;
    running += std::stod(row.at("running")) * (to_s - from_s);
    EXPECT_NEAR(std::stod(row.at("kv_bytes")), std::stod(row.at("pages")) * 16 * 131'072, 1);
  }
  EXPECT_EQ(ends.size(), 12U);
  EXPECT_TRUE(ends.contains("prefill.7"));
  EXPECT_TRUE(ends.contains("decode.3"));
  EXPECT_NEAR(running, sum(requests, "prefilling_s") + sum(requests, "decoding_s"), 1e-6 * running);
}

// A viewer shows nothing where slices of a track overlap; arrows begin in a hand-over and end on another instance.
TEST_F(TheFiles, have_a_timeline_whose_tracks_do_not_overlap) {
  std::string job = apart;  // many prompts end in one pass, so that their caches go together
  job.replace(job.find("{poisson: 40 /s}"), 16, "at-once");
  const json timeline = json::parse(files(job).at("timeline.json"));
  std::map<std::pair<int, int>, std::vector<std::pair<double, double>>> tracks;
  std::map<int, std::pair<int, int>> arrows;  // from, to
  int hand_overs = 0;
  for (const json& event : timeline.at("traceEvents")) {
    const std::string ph = event.at("ph");
    if (ph == "X") {
      const double ts = event.at("ts"), dur = event.at("dur");
      tracks[{event.at("pid"), event.at("tid")}].emplace_back(ts, ts + dur);
      hand_overs += event.at("name") == "hand-over" ? 1 : 0;
    }
    if (ph == "s") arrows[event.at("id")].first = event.at("pid");
    if (ph == "f") arrows[event.at("id")].second = event.at("pid");
  }
  for (auto& [track, slices] : tracks) {
    std::ranges::sort(slices);
    for (std::size_t i = 1; i < slices.size(); ++i) EXPECT_LE(slices[i - 1].second, slices[i].first);
  }
  EXPECT_EQ(hand_overs, 600);
  EXPECT_GT(tracks.size(), 12U + 8U);  // more than one for hand-overs
  EXPECT_EQ(arrows.size(), 600U);
  for (const auto& [id, arrow] : arrows) {
    EXPECT_TRUE(arrow.first >= 1 && arrow.first <= 8) << arrow.first;
    EXPECT_TRUE(arrow.second >= 9 && arrow.second <= 12) << arrow.second;
  }
}

TEST_F(TheFiles, have_a_timeline_from_when_one_likes) {
  const json timeline = json::parse(files(apart, {{"trace-from", {"5 s"}}, {"trace-args", {"none"}}}).at("timeline.json"));
  std::size_t slices = 0;
  for (const json& event : timeline.at("traceEvents")) {
    if (event.at("ph") != "X") continue;
    ++slices;
    EXPECT_GE(event.at("ts").get<double>(), 5e6);
    EXPECT_FALSE(event.contains("args"));
  }
  EXPECT_GT(slices, 100U);
}

TEST_F(TheFiles, are_not_written_without_the_slices_that_were_asked_for) {
  for (const auto& [from, why] :
       {std::pair("1 day", "--trace-from:1:1: error: 1 day is behind the end, at "), std::pair("x", "--trace-from takes a time"),
        std::pair("-1 s", "--trace-from takes a time, not '-1 s'")}) {
    try {
      static_cast<void>(answer_of("simulate", apart, {{"trace-from", {from}}}));
      ADD_FAILURE() << from;
    } catch (const config::InputError& error) {
      EXPECT_NE(std::string(error.what()).find(why), std::string::npos) << error.what();
    }
  }
}

// The highest rate is asked of loads that have one, and of a promise.
TEST_F(TheFiles, know_no_highest_rate_without_a_rate) {
  std::string closed = std::string(apart) + "  slo: {ttft: 1 s}\n";
  const std::string poisson = "{poisson: 40 /s}";
  closed.replace(closed.find(poisson), poisson.size(), "{closed: 4}");
  for (const auto& [job, why] : {std::pair(closed, "job.yaml:8:20: error: --goodput needs requests that come at a rate"),
                                 std::pair(std::string(apart), "job.yaml:4:1: error: --goodput needs a promise")}) {
    try {
      static_cast<void>(answer_of("simulate", job, {{"goodput", {}}}));
      ADD_FAILURE() << why;
    } catch (const config::InputError& error) {
      EXPECT_NE(std::string(error.what()).find(why), std::string::npos) << error.what();
    }
  }
}

// Of those who decode nobody is left, and prompts go on until no room is: no time is known, and nobody worked for more than all of it.
TEST_F(TheFiles, say_nothing_of_times_that_nobody_had) {
  const std::string gone = std::string(apart) + "simulation: {faults: [";
  for (const std::string at : {"0 s", "1 s", "3 s"}) {
    std::string faults;
    for (int i = 0; i < 4; ++i) faults += fmt::format("{}instance decode.{} at {}", i == 0 ? "" : ", ", i, at);
    const json result = json::parse(files(gone + faults + "]}\n").at("result.json")).at("results").at("simulated");
    EXPECT_LT(result.at("finished").get<int>(), result.at("counted").get<int>());
    EXPECT_EQ(result.at("ttft").at("mean_s").is_null(), result.at("finished") == 0);
    EXPECT_EQ(result.at("e2e").at("mean_s").is_null(), result.at("finished") == 0);
    for (const json& pool : result.at("pools")) {
      EXPECT_LE(pool.at("busy").get<double>(), 1 + 1e-12) << pool;
      EXPECT_GE(pool.at("busy").get<double>(), 0) << pool;
    }
  }
}

TEST_F(TheFiles, have_no_time_per_token_of_answers_of_one) {
  std::string text = apart;
  const std::string answers = "{uniform: [1, 200]}";
  const json result =
      json::parse(files(text.replace(text.find(answers), answers.size(), "1")).at("result.json")).at("results").at("simulated");
  EXPECT_EQ(result.at("finished"), result.at("counted"));
  EXPECT_TRUE(result.at("tpot").at("mean_s").is_null());
  EXPECT_TRUE(result.at("itl").at("p99_s").is_null());
  EXPECT_TRUE(result.at("tpot_split_s").is_null());
  EXPECT_FALSE(result.at("ttft_split_s").is_null());
  EXPECT_GT(result.at("ttft").at("mean_s").get<double>(), 0);
}

// The page of a command is that of the folder it wrote, with what it found out.
TEST_F(TheFiles, give_the_same_page_as_the_command) {
  const std::string faults = "faults: {nodes: {source: poisson, rate: 1 /h}}\n";
  const std::string promise = std::string(apart).replace(std::string(apart).find("  load:"), 0, "  slo: {ttft: 1 s, tpot: 50 ms}\n");
  for (const auto& [command, heading] : {std::pair("simulate", "Requests"), std::pair("explain", "One choice changed"),
                                         std::pair("run", "Days with failures"), std::pair("tune", "The best deployments")}) {
    const sim::KindAnswer answer = answer_of(command, promise + faults);
    const auto folder = std::filesystem::temp_directory_path() / ("rehearse-page-" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder);
    for (const auto& [name, text] : files(answer)) std::ofstream(folder / name) << text;
    std::ostringstream direct, read;
    sim::page::write(sim::page::input_of(answer.report), direct);
    sim::page::write(sim::page::input_of(folder), read);
    std::filesystem::remove_all(folder);
    EXPECT_TRUE(direct.str() == read.str()) << command;
    EXPECT_NE(direct.str().find(heading), std::string::npos) << command;
  }
}

// Every number of the page of tune is result.json's; there is a circle for each deployment of the front.
TEST_F(TheFiles, say_of_deployments_what_the_result_says) {
  std::string text = std::string(apart) + "tune: {goal: [cost, ttft, tpot], confirm: 2}\n";
  text.insert(text.find("  load:"), "  slo: {ttft: 1 s, tpot: 50 ms}\n");
  const sim::KindAnswer answer = answer_of("tune", text);
  const json result = json::parse(files(answer).at("result.json"));
  std::ostringstream out;
  sim::page::write(sim::page::input_of(answer.report), out);
  const std::string page = out.str();
  std::size_t numbers = 0, circles = 0;
  const std::string begin = "<data value=\"", middle = "\" data-at=\"";
  for (std::size_t at = page.find(begin); at != std::string::npos; at = page.find(begin, at + 1)) {
    const std::size_t value = at + begin.size(), end = page.find('"', value);
    if (page.compare(end, middle.size(), middle) != 0) continue;
    const std::size_t place = end + middle.size();
    EXPECT_EQ(json::parse(page.substr(value, end - value)),
              result.at(json::json_pointer(page.substr(place, page.find('"', place) - place))));
    ++numbers;
  }
  for (std::size_t at = page.find("<circle"); at != std::string::npos; at = page.find("<circle", at + 1)) ++circles;
  const json& front = result.at("tune").at("front");
  EXPECT_GT(numbers, 20U);
  EXPECT_GT(front.size(), 3U);
  EXPECT_EQ(circles, 2 * front.size());  // cost against each of the others
  EXPECT_EQ(front.at(0).at("cost_per_s"), result.at("tune").at("best").at(0).at("cost_per_s"));
  for (const char* id : {"serving-tune", "serving-front", "job"})
    EXPECT_NE(page.find("<section id=\"" + std::string(id) + "\""), std::string::npos);
  EXPECT_NE(page.find("no price is given for a GPU: each counts as 1 an hour"), std::string::npos);
}

// One that was asked for another's rate and does not carry it has no rate of its own, but that one.
TEST_F(TheFiles, say_what_deployments_do_not_carry) {
  std::string text = std::string(apart) + "tune: {goal: goodput-per-cost, inventory: 16, tp: [1, 2, 4]}\n";
  text.insert(text.find("  load:"), "  slo: {ttft: 1 s, tpot: 50 ms}\n");
  const sim::KindAnswer answer = answer_of("tune", text);
  const json result = json::parse(files(answer).at("result.json"));
  int raced = 0;
  for (const json& one : result.at("tune").at("best")) {
    if (!one.contains("simulated")) continue;
    const bool unknown = one.at("simulated").at("goodput_requests_per_s").is_null();
    raced += one.contains("carries_less_than_per_s") ? 1 : 0;
    EXPECT_EQ(one.contains("carries_less_than_per_s"), unknown) << one;
  }
  EXPECT_GT(raced, 0);
}

// Once, of all values.
TEST_F(TheFiles, have_the_notes_of_a_sweep) {
  std::string text = std::string(apart) + "tune: {inventory: 16, tp: [1, 2], confirm: 0}\n";
  text.insert(text.find("  load:"), "  slo: {ttft: 1 s, tpot: 50 ms}\n");
  const json alone = json::parse(files(answer_of("tune", text)).at("result.json")),
             swept = json::parse(files(answer_of("tune", text, {{"sweep", {"serving.load.requests=600,800"}}})).at("result.json"));
  const auto says = [](const json& result, const std::string& what) {
    return std::ranges::count_if(result.at("notes"), [&](const json& note) { return note.get<std::string>().find(what) == 0; });
  };
  EXPECT_EQ(says(alone, "no price is given"), 1) << alone.at("notes");
  EXPECT_EQ(says(swept, "no price is given"), 1) << swept.at("notes");
}

TEST_F(TheFiles, show_what_failed) {
  const auto all = files(std::string(apart) + "simulation: {faults: [instance decode.1 at 5 s for 3 s, instance prefill.2 at 6 s]}\n");
  const json timeline = json::parse(all.at("timeline.json"));
  std::vector<std::string> instants;
  int cut = 0;
  for (const json& event : timeline.at("traceEvents")) {
    if (event.at("ph") == "i") instants.push_back(event.at("name"));
    if (event.at("ph") == "X" && event.at("args").contains("end")) ++cut;
    const bool down = event.at("ph") == "X" && event.at("pid") == 10 && event.at("tid") == 1;
    EXPECT_FALSE(down && event.at("ts").get<double>() > 5e6 && event.at("ts").get<double>() < 8e6);
  }
  EXPECT_EQ(instants, (std::vector<std::string>{"fails", "fails", "is back"}));
  EXPECT_GE(cut, 1);
  for (const auto& row : rows(all.at("occupancy.csv"))) {
    const bool gone = row.at("instance") == "prefill.2" && std::stod(row.at("from_s")) > 6;
    EXPECT_TRUE(!gone || std::stod(row.at("pages")) == 0);
  }
}

// A promise that nobody can keep: the answer of --slo is no, and every number stands there all the same.
TEST_F(TheFiles, say_the_same_of_methods) {
  const std::string job = std::string(apart) + "  slo: {ttft: 1 ms, tpot: 1 ms}\n";
  const std::map<std::string, std::vector<std::string>> both{{"methods", {"apart,together"}}};
  const sim::KindAnswer answer = answer_of("compare", job, both);
  EXPECT_TRUE(answer.yes);
  EXPECT_FALSE(answer_of("compare", job, {{"methods", {"apart,together"}}, {"slo", {}}}).yes);
  const auto all = files(answer);
  const auto table = rows(all.at("methods.csv"));
  const json methods = json::parse(all.at("result.json")).at("methods");
  ASSERT_EQ(table.size(), methods.size());
  ASSERT_EQ(table.size(), 3U);
  for (std::size_t i = 0; i < table.size(); ++i) {
    const json& simulated = methods[i].at("simulated");
    EXPECT_EQ(table[i].at("method"), methods[i].at("method"));
    EXPECT_EQ(std::stoi(table[i].at("gpus")), 16);
    EXPECT_EQ(methods[i].at("gpus"), 16);
    EXPECT_EQ(std::stod(table[i].at("ttft_s")), simulated.at("ttft").at("mean_s"));
    EXPECT_EQ(std::stod(table[i].at("goodput_requests_per_s")), 0);  // a prompt alone takes longer
    EXPECT_EQ(simulated.at("goodput_requests_per_s"), 0);
  }
}

TEST_F(TheFiles, follow_a_request_once) {
  EXPECT_NO_THROW(files(small_job, {{"trace-requests", {"1,0"}}}));
  EXPECT_THROW(files(small_job, {{"trace-requests", {"1,0,1"}}}), config::InputError);
}

}  // namespace
}  // namespace rehearse::tests
