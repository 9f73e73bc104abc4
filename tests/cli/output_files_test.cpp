#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "tests/cli/program.hpp"

namespace rehearse::cli {
namespace {

namespace fs = std::filesystem;

class OutputFiles : public testing::Test {
 protected:
  Outcome run(const std::string& arguments) { return run_shell("exec \"$rehearse\" " + arguments, folder_.path()); }
  [[nodiscard]] fs::path at(const std::string& name) const { return folder_.path() / name; }
  [[nodiscard]] std::set<std::string> names_in(const std::string& name) const {
    std::set<std::string> names;
    for (const auto& entry : fs::directory_iterator(at(name))) names.insert(entry.path().filename().string());
    return names;
  }
  TemporaryFolder folder_;
};

TEST_F(OutputFiles, CompareWritesAllOfThem) {
  const Outcome outcome = run("compare llama3-8b-8-h100 -o new/out");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(names_in("new/out"),
            (std::set<std::string>{"compare.csv", "memory.csv", "phases.csv", "resolved-job.yaml", "result.json", "timeline.json"}));
  EXPECT_NE(outcome.err.find("wrote new/out/timeline.json"), std::string::npos);
  EXPECT_TRUE(nlohmann::json::accept(content_of(at("new/out/timeline.json"))));
}

TEST_F(OutputFiles, SameJobAndSeedGiveTheSameBytes) {
  const Outcome first = run("compare llama3-8b-8-h100 --seed 3 -o first");
  const Outcome second = run("compare llama3-8b-8-h100 --seed 3 -o second");
  ASSERT_EQ(first.code, 0) << first.err;
  EXPECT_EQ(first.out, second.out);
  ASSERT_EQ(names_in("first"), names_in("second"));
  for (const std::string& name : names_in("first")) EXPECT_EQ(content_of(at("first/" + name)), content_of(at("second/" + name))) << name;
}

TEST_F(OutputFiles, JsonOnStandardOutputIsTheFile) {
  const Outcome outcome = run("predict llama3-8b-8-h100 --json -o out");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, content_of(at("out/result.json")));
}

TEST_F(OutputFiles, TheResolvedJobGivesTheSameResult) {
  for (const std::string& job :
       std::vector<std::string>{"llama3-8b-8-h100 --set batch.global=64", "phones-200", "raspberry-pis-4", "serve-llama3-70b-two-types"}) {
    SCOPED_TRACE(job);
    ASSERT_EQ(run("predict " + job + " -o first").code, 0);
    const Outcome again = run("predict first/resolved-job.yaml -o second");
    ASSERT_EQ(again.code, 0) << again.err;
    for (const std::string& name : names_in("first")) EXPECT_EQ(content_of(at("first/" + name)), content_of(at("second/" + name))) << name;
  }
}

// Of every kind, with what was said on the command line.
TEST_F(OutputFiles, TheResolvedJobGivesTheSameAnswer) {
  const std::string serve = "serve-llama3-70b-apart --set serving.load.requests=50", whole = "mofa-llama2-70b-128";
  for (const auto& [command, options] : std::map<std::string, std::vector<std::string>>{
           {"simulate", {serve, serve + " --fault 'instance decode.2 at 1 s for 9 s'", "raspberry-pis-4 --fault 'device 3 slow 4'"}},
           {"run", {whole + " --step '6 s'", whole + " --step '6 s' --sweep checkpoint.interval=10,20"}},
           {"tune", {"llama3-8b-64-h100 --space parallel.tp=1,2 --space parallel.dp=16,32,64 --space parallel.cp=1,2 --confirm 0"}}}) {
    for (const std::string& job : options) {
      const Outcome first = run(command + " " + job + " --json -o first");
      ASSERT_EQ(first.code, 0) << first.err;
      const bool swept = job.find("--sweep") != std::string::npos;
      const std::string asked = swept || command == "tune" ? job.substr(job.find(swept ? "--sweep" : "--space")) : "";
      if (command == "tune") {
        ASSERT_EQ(run("predict llama3-8b-64-h100 -o first").code, 0);
      }
      const Outcome again = run(command + " first/resolved-job.yaml --json " + asked);
      ASSERT_EQ(again.code, 0) << again.err;
      nlohmann::json a = nlohmann::json::parse(first.out), b = nlohmann::json::parse(again.out);
      if (command == "tune") {
        EXPECT_EQ(a["tune"]["best"][0]["goals"], b["tune"]["best"][0]["goals"]) << job;
        EXPECT_EQ(a["tune"]["counts"], b["tune"]["counts"]) << job;
      } else {
        EXPECT_EQ(a, b) << job;
      }
    }
  }
}

TEST_F(OutputFiles, ASearchFromTheBestPlanEndsThere) {
  const std::string options = " --space parallel.tp=1,2 --space parallel.cp=1,2 --confirm 0 --json";
  const nlohmann::json first = nlohmann::json::parse(run("tune llama3-8b-64-h100 -o first" + options).out);
  const nlohmann::json again = nlohmann::json::parse(run("tune first/best.yaml" + options).out);
  EXPECT_EQ(again["tune"]["counts"], first["tune"]["counts"]);
  EXPECT_EQ(again["tune"]["best"][0]["goals"], first["tune"]["best"][0]["goals"]);
}

TEST_F(OutputFiles, NoScheduleIsFasterThanOneNumber) {
  const nlohmann::json answer = nlohmann::json::parse(run("compare raspberry-pis-4 --methods tuned --json").out);
  EXPECT_EQ(answer["federated"]["any_schedule_s"], answer["methods"][0]["any_schedule_s"]);
}

// Traces, engines and drafts are looked for from where the job stands, and found from where its results lie.
TEST_F(OutputFiles, WhatAServingJobNamesIsFoundFromItsResults) {
  fs::create_directories(at("jobs/a"));
  fs::create_directories(at("jobs/b"));
  std::ofstream(at("jobs/requests.csv")) << "arrival_s,input_tokens,output_tokens\n0,100,10\n0.5,2000,100\n1,500,50\n";
  std::ofstream(at("jobs/a/engine.yaml")) << "like: vllm\nserving: {pass: 1 ms}\n";
  std::ofstream(at("jobs/b/engine.yaml")) << "like: vllm\nserving: {pass: 100 ms}\n";
  std::ofstream(at("jobs/draft.yaml")) << "like: llama3-8b\nlayers: 4\n";
  std::ofstream(at("jobs/job.yaml"))
      << "model: llama3-8b\ncluster: dgx-h100-ndr400\nsoftware: ./a/engine.yaml\nserving:\n  pools:\n"
         "    quick: {role: both, overflow: reserve, parallel: {tp: 1}, speculative: {tokens: 2, acceptance: 0.5, draft: ./draft.yaml}}\n"
         "  load: {arrivals: {trace: requests.csv}}\n  slo: {ttft: 1 s, tpot: 1 s}\n";
  const Outcome first = run("simulate jobs/job.yaml --json -o deep/out");
  ASSERT_EQ(first.code, 0) << first.err;
  EXPECT_EQ(run("simulate deep/out/resolved-job.yaml --json").out, first.out);
  ASSERT_EQ(run("tune jobs/job.yaml --set serving.pools.quick.speculative=null -o deep/best").code, 0);
  EXPECT_EQ(run("simulate deep/best/plan.yaml").code, 0);
  // Two engines of one file name are two.
  const std::string decode =
      "predict serve-llama3-70b-apart --json --set serving.pools.prefill.software=./jobs/a/engine.yaml"
      " --set serving.pools.decode.software=./jobs/";
  const auto tpot_s = [&](const std::string& of) {
    return nlohmann::json::parse(run(decode + of + "/engine.yaml").out)["results"]["analytic"]["tpot"]["mean_s"].get<double>();
  };
  EXPECT_LT(tpot_s("a"), 0.1);
  EXPECT_GT(tpot_s("b"), 0.1);
}

TEST_F(OutputFiles, ADashIsStandardOutput) {
  const Outcome dashed = run("export hf llama3-8b-8-h100 -o -"), plain = run("export hf llama3-8b-8-h100");
  ASSERT_EQ(dashed.code, 0) << dashed.err;
  EXPECT_EQ(dashed.out, plain.out);
  EXPECT_FALSE(fs::exists(at("-")));
}

TEST_F(OutputFiles, ATraceForEachRankIsWrittenBesideThem) {
  const Outcome outcome = run("simulate gpt-oss-120b-64-h100 --trace-per-rank traces");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.err.find("wrote 4 traces into traces"), std::string::npos) << outcome.err;
  EXPECT_TRUE(names_in("traces").contains("rank0.json"));
  ASSERT_EQ(run("simulate gpt-oss-120b-64-h100 --trace-per-rank packed --trace-gzip").code, 0);
  EXPECT_EQ(content_of(at("packed/rank0.json.gz")).substr(0, 2), "\x1f\x8b");
  EXPECT_EQ(run("simulate gpt-oss-120b-64-h100 --trace-args none").code, 2) << "it speaks of a file of -o";
}

TEST_F(OutputFiles, ThePageOfAFolderIsThatOfTheCommand) {
  ASSERT_EQ(run("compare llama3-8b-8-h100 -o out --html").code, 0);
  const std::string page = content_of(at("out/report.html"));
  fs::remove(at("out/report.html"));
  const Outcome outcome = run("report out");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(content_of(at("out/report.html")), page);
  EXPECT_EQ(run("compare llama3-8b-8-h100 --html").code, 2) << "nowhere to write it";
}

// What a simulation left in the folder is no part of a prediction or of a search that came after it.
TEST_F(OutputFiles, APageHasNothingOfAnEarlierRun) {
  run("simulate llama3-8b-8-h100 -o simulated");
  run("report simulated");
  ASSERT_NE(content_of(at("simulated/report.html")).find("timeline-title"), std::string::npos);
  for (const std::string command : {"predict llama3-70b-64-h100", "run llama3-8b-8-h100 --set training.steps=1000 --runs 2"}) {
    run(command + " -o alone");
    run("report alone");
    run(command + " -o simulated");
    run("report simulated");
    EXPECT_EQ(content_of(at("simulated/report.html")), content_of(at("alone/report.html"))) << command;
    fs::remove_all(at("alone"));
  }
}

TEST_F(OutputFiles, WhatAnEarlierCommandLeftIsNamed) {
  ASSERT_EQ(run("simulate llama3-8b-8-h100 -o out --html").err.find("earlier command"), std::string::npos);
  const Outcome outcome = run("predict llama3-8b-8-h100 -o out");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  for (const char* left : {"report.html", "timeline.json"}) {
    EXPECT_NE(outcome.err.find(std::string("out/") + left + " is of an earlier command"), std::string::npos) << outcome.err;
  }
  EXPECT_EQ(outcome.err.find("result.json is of"), std::string::npos) << outcome.err;
}

TEST_F(OutputFiles, APageOfWhatIsNoResultIsRefused) {
  EXPECT_EQ(run("report nowhere").code, 2);
  fs::create_directories(at("out"));
  for (const std::string text : {"", "[", "[]", "{}", "{\"results\": {\"analytic\": {\"mean_phases_s\": 5}}}",
                                 "{\"whole_job\": {\"runs\": [{\"account_ns\": 3}]}}"}) {
    std::ofstream(at("out/result.json")) << text;
    const Outcome outcome = run("report out");
    EXPECT_TRUE(outcome.code == 2 || text == "{}" || text == "[]") << text << outcome.err;
    EXPECT_TRUE(outcome.code == 2 || fs::exists(at("out/report.html")));
  }
}

TEST_F(OutputFiles, DiffOfAJobWithItselfFindsNothing) {
  const Outcome same = run("diff llama3-8b-8-h100 llama3-8b-8-h100");
  ASSERT_EQ(same.code, 0) << same.err;
  EXPECT_NE(same.out.find("The jobs are the same."), std::string::npos);
}

TEST_F(OutputFiles, DiffSaysWhichKeysDifferAndWhatEachPartAloneDoes) {
  ASSERT_EQ(run("compare llama3-8b-8-h100 -o a").code, 0);
  ASSERT_EQ(run("compare llama3-8b-8-h100 -o b --set recompute=full --set batch.global=64").code, 0);
  const Outcome outcome = run("diff a b --json");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const auto json = nlohmann::json::parse(outcome.out);
  const auto a = nlohmann::json::parse(content_of(at("a/result.json"))).at("results").at("simulated");
  EXPECT_EQ(json.at("a").at("step_s"), a.at("step_s"));
  EXPECT_EQ(json.at("a").at("method"), "simulated");
  std::set<std::string> keys;
  for (const auto& key : json.at("keys")) keys.insert(key.at("key"));
  EXPECT_EQ(keys, (std::set<std::string>{"batch.global", "recompute"}));
  double phases = 0;
  for (const auto& phase : json.at("phases")) phases += phase.at("difference_s").get<double>();
  EXPECT_NEAR(phases, json.at("b").at("step_s").get<double>() - json.at("a").at("step_s").get<double>(), 1e-9);
  ASSERT_EQ(json.at("parts_alone").size(), 2U);
  for (const auto& part : json.at("parts_alone")) EXPECT_EQ(part.at("step_s").get<double>() > 0, part.at("part") == "recompute");
}

TEST_F(OutputFiles, DiffRefusesWhatCannotBeSetSideBySide) {
  ASSERT_EQ(run("predict llama3-8b-8-h100 -o predicted").code, 0);
  ASSERT_EQ(run("simulate llama3-8b-8-h100 -o simulated").code, 0);
  EXPECT_EQ(run("diff predicted simulated").code, 2);
  EXPECT_EQ(run("diff predicted nowhere").code, 2);
  EXPECT_EQ(run("diff predicted predicted --price 0").code, 2);
  std::string later = content_of(at("predicted/result.json"));
  later.replace(later.find("\"format\": 1"), 11, "\"format\": 9");
  std::ofstream(at("predicted/result.json")) << later;
  const Outcome outcome = run("diff predicted predicted");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_NE(outcome.err.find("format 9, this program reads 1"), std::string::npos) << outcome.err;
}

TEST_F(OutputFiles, DiffOfServingAndFederatedJobsSaysWhatDiffers) {
  const auto diff = [&](const std::string& arguments) {
    const Outcome outcome = run("diff " + arguments + " --json");
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return nlohmann::json::parse(outcome.out);
  };
  const auto metric = [](const nlohmann::json& json, const std::string& name) {
    for (const auto& one : json.at("metrics")) {
      if (one.at("name") == name) return one;
    }
    return nlohmann::json();
  };
  const std::string less = " --set serving.load.requests=300";
  ASSERT_EQ(run("simulate serve-llama3-70b-apart -o a" + less).code, 0);
  ASSERT_EQ(run("compare serve-llama3-70b-apart -o b --set serving.pools.decode.instances=2" + less).code, 0);
  const nlohmann::json folders = diff("a b");
  ASSERT_EQ(folders.at("keys").size(), 1U) << folders.at("keys");
  EXPECT_EQ(folders.at("keys")[0].at("key"), "serving.pools.decode.instances");
  EXPECT_EQ(folders.at("method"), "simulated");
  for (const auto& [side, name] : {std::pair("a", "a"), std::pair("b", "b")}) {
    const auto result = nlohmann::json::parse(content_of(at(std::string(name) + "/result.json"))).at("results").at("simulated");
    EXPECT_EQ(metric(folders, "ttft.mean_s").at(side), result.at("ttft").at("mean_s"));
    EXPECT_EQ(metric(folders, "pools.decode.busy").at(side), result.at("pools")[1].at("busy"));
  }
  EXPECT_EQ(diff("serve-llama3-70b-apart serve-llama3-70b-together").at("method"), "analytic");
  EXPECT_EQ(metric(diff("phones-200 phones-200"), "federated.round_s").at("a"),
            metric(diff("phones-200 phones-200"), "federated.round_s").at("b"));
  EXPECT_NE(run("diff a a").out.find("The jobs are the same."), std::string::npos);
  EXPECT_NE(run("diff a llama3-8b-8-h100").err.find("'llama3-8b-8-h100' is a training job"), std::string::npos);
  EXPECT_EQ(run("diff a b --price 2").code, 2);
}

TEST_F(OutputFiles, BrokenResultsAreRefusedAtTheirPlace) {
  ASSERT_EQ(run("predict llama3-8b-8-h100 -o out").code, 0);
  std::ofstream(at("out/result.json")) << "{\n  \"format\": 1,\n  \"results\": }";
  const std::string place = "out/result.json:3:14: error: not JSON: syntax error while parsing value - unexpected '}'";
  for (const std::string command : {"diff out llama3-8b-8-h100", "report out"}) {
    const Outcome outcome = run(command);
    EXPECT_EQ(outcome.code, 2);
    EXPECT_NE(outcome.err.find(place), std::string::npos) << outcome.err;
    EXPECT_NE(outcome.err.find("    3 |   \"results\": }\n      |              ^"), std::string::npos) << outcome.err;
  }
  std::ofstream(at("out/result.json")) << "{\n  \"format\": 1,\n";
  EXPECT_NE(run("report out").err.find("out/result.json:3:1: error: not JSON: it ends too early"), std::string::npos);
  std::ofstream(at("out/result.json")) << "{\"format\": 1, \"results\": {\"analytic\": {}}, \"job\": {\"gpus\": 8}}";
  const Outcome outcome = run("diff out out");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_NE(outcome.err.find("key 'step_s' not found"), std::string::npos) << outcome.err;
  EXPECT_EQ(outcome.err.find("json.exception"), std::string::npos) << outcome.err;
}

TEST_F(OutputFiles, AFileInThePlaceOfTheFolderIsRefusedBeforeAnyWork) {
  std::ofstream(at("file")) << "mine";
  const Outcome outcome = run("predict no-such-job -o file");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_NE(outcome.err.find("cannot write to 'file': 'file' is not a folder"), std::string::npos) << outcome.err;
  EXPECT_EQ(content_of(at("file")), "mine");
}

TEST_F(OutputFiles, AFolderThatCannotBeMadeIsRefused) {
  const Outcome outcome = run("predict llama3-8b-8-h100 -o /proc/rehearse");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.out, "");
  EXPECT_NE(outcome.err.find("cannot write to '/proc/rehearse"), std::string::npos) << outcome.err;
}

// Nobody can make a file there, not even root.
TEST_F(OutputFiles, AFolderThatTakesNoFilesIsRefused) {
  const Outcome outcome = run("predict llama3-8b-8-h100 -o /proc/self");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.out, "");
  EXPECT_NE(outcome.err.find("cannot write to '/proc/self"), std::string::npos) << outcome.err;
}

// The limit of a file's size stands for the disk: no user needs rights for it. In units of 1 KiB: some file is larger.
TEST_F(OutputFiles, AFullDiskLeavesNothing) {
  const Outcome outcome = run_shell("ulimit -f 16\nexec \"$rehearse\" simulate llama3-8b-8-h100 -o new/out", folder_.path());
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.out, "");
  EXPECT_NE(outcome.err.find(": File too large"), std::string::npos) << outcome.err;
  EXPECT_FALSE(fs::exists(at("new")));
}

TEST_F(OutputFiles, AKilledWriterLeavesNothingForLong) {
  // Killed as soon as it writes.
  const Outcome killed = run_shell(
      "\"$rehearse\" simulate llama3-8b-8-h100 -o out >/dev/null 2>&1 &\n"
      "until ls out/.*.partial >/dev/null 2>&1 || ! kill -0 $!; do :; done\nkill -KILL $!\nwait $!",
      folder_.path());
  ASSERT_TRUE(killed.code == 128 + SIGKILL || killed.code == 0) << killed.err;  // 0: it was faster
  const Outcome outcome = run("simulate llama3-8b-8-h100 -o out");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(names_in("out"), (std::set<std::string>{"memory.csv", "phases.csv", "resolved-job.yaml", "result.json", "timeline.json"}));
}

// Each file is one of theirs as a whole.
TEST_F(OutputFiles, ManyMayWriteToOneFolder) {
  const Outcome outcome = run_shell(
      "for seed in 1 2 3 4 5 6; do \"$rehearse\" predict llama3-8b-8-h100 --seed $seed -o out >/dev/null 2>&1 & done\n"
      "for job in $(jobs -p); do wait $job || exit 9; done",
      folder_.path());
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(names_in("out"), (std::set<std::string>{"phases.csv", "resolved-job.yaml", "result.json"}));
  const auto seed = nlohmann::json::parse(content_of(at("out/result.json"))).at("seed").get<int>();
  EXPECT_TRUE(seed >= 1 && seed <= 6) << seed;
}

// A file appears by renaming, which would take a device's place: /dev/null's, for whoever may.
TEST_F(OutputFiles, ADeviceOrPipeKeepsItsPlace) {
  const Outcome outcome = run_shell("mkfifo pipe && \"$rehearse\" topology pcie-box-4 --dot pipe", folder_.path());
  EXPECT_EQ(outcome.code, 2);
  EXPECT_NE(outcome.err.find("'pipe': it is a device or a pipe"), std::string::npos) << outcome.err;
  EXPECT_TRUE(fs::is_fifo(at("pipe")));
}

TEST_F(OutputFiles, WrongInputLeavesNoFolder) {
  EXPECT_EQ(run("predict llama3-8b-8-h100 --set parallel.tp=3 -o out").code, 2);
  EXPECT_FALSE(fs::exists(at("out")));
}

}  // namespace
}  // namespace rehearse::cli
