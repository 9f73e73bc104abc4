// A kind of job that these tests add from outside: `choir`, whose answer is how many voices it has.
#include <gtest/gtest.h>
#include <unistd.h>

#include <CLI/App.hpp>
#include <filesystem>
#include <fstream>
#include <ostream>

#include "config/keys.hpp"
#include "sim/cli/command.hpp"
#include "sim/cli/other_kinds.hpp"
#include "sim/job/job_document.hpp"
#include "sim/kind/job_kind.hpp"
#include "sim/report/reporter.hpp"

namespace rehearse::sim {
namespace {

struct Choir {
  int voices = 0;
  bool loud = false;
};

config::Keys<Choir> choir_keys() {
  return {{"voices", &Choir::voices, config::whole(1, 99), "How many sing."},
          {"loud", &Choir::loud, config::truth(), "Whether they shout."}};
}

class ChoirKind final : public JobKind {
 public:
  [[nodiscard]] std::map<std::string, std::vector<KindOption>> commands() const override {
    return {{"predict", {{"encore", "N", "Sing so often again"}}}, {"simulate", {}}};
  }
  [[nodiscard]] KindAnswer answer(const std::string& command, const KindRequest& request) const override {
    Choir choir;
    choir_keys().read(request.document.at("choir"), choir);
    if (const std::string* encore = request.option("encore")) choir.voices *= std::stoi(*encore);
    JobSummary about;
    about.name = request.name + " by " + command;
    return {.report = Report(about, "choir-").own(choir), .yes = !choir.loud};
  }
  [[nodiscard]] JobSummary summary(const std::string& name, const config::Node&) const override {
    JobSummary about;
    about.name = name;
    return about;
  }
  [[nodiscard]] config::Shape shape() const override { return choir_keys().shape(); }
};
const JobKindRegistry::Registration<ChoirKind> choir_kind_registration("choir");

class ChoirConsole final : public Reporter {
 public:
  [[nodiscard]] std::string_view file_name() const override { return ""; }
  [[nodiscard]] bool applies(const Report& report) const override { return report.has<Choir>(); }
  void write(const Report& report, std::ostream& out) const override {
    out << report.job.name << ": " << report.get<Choir>().voices << " voices\n";
  }
};
const ReporterRegistry::Registration<ChoirConsole> choir_console_registration("choir-console");

class HandedOver : public testing::Test {
 protected:
  HandedOver() { std::filesystem::create_directories(folder_); }
  ~HandedOver() override { std::filesystem::remove_all(folder_); }

  // What the command says of a job with that text.
  std::optional<cli::Exit> run(const std::string& command, const std::string& job, const std::string& options = "") {
    std::ofstream(folder_ / "job.yaml") << job;
    CLI::App app;
    const cli::Command& known = cli::CommandRegistry::get(command);
    CLI::App* sub = app.add_subcommand(command);
    action_ = known.declare(*sub);
    cli::declare_options_of_kinds(command, *sub);
    app.parse(command + " " + (folder_ / "job.yaml").string() + " " + options);
    return cli::answer_of_other_kind(*sub);
  }
  std::string refusal(const std::string& command, const std::string& job, const std::string& options = "") {
    try {
      run(command, job, options);
    } catch (const config::InputError& error) {
      return error.what();
    }
    return "";
  }

  std::filesystem::path folder_ = std::filesystem::temp_directory_path() / ("rehearse-kind-" + std::to_string(getpid()));
  cli::Command::Action action_;
};

TEST_F(HandedOver, its_kind_answers) {
  testing::internal::CaptureStdout();
  EXPECT_EQ(run("predict", "choir: {voices: 4}\n", "--encore 3 --set choir.voices=5"), cli::Exit::fine);
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "job by predict: 15 voices\n");
}

TEST_F(HandedOver, and_may_say_no) {
  testing::internal::CaptureStdout();
  EXPECT_EQ(run("simulate", "choir: {voices: 4, loud: true}\n"), cli::Exit::answer_is_no);
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "job by simulate: 4 voices\n");
}

TEST_F(HandedOver, a_training_job_stays_with_the_command) {
  EXPECT_EQ(run("predict", "model: llama3-8b\n"), std::nullopt);
  EXPECT_EQ(run("predict", "model: llama3-8b  # sings in a choir\n"), std::nullopt);
}

TEST_F(HandedOver, a_section_that_is_misspelt_is_not_taken_for_a_training_job_s) {
  const std::string said = refusal("predict", "name: carol\nchior: {voices: 4}\n");
  EXPECT_NE(said.find("job.yaml:2:1: error: unknown key 'chior'"), std::string::npos) << said;
  EXPECT_NE(said.find("did you mean 'choir'?"), std::string::npos) << said;
  EXPECT_EQ(run("predict", "modell: llama3-8b\n"), std::nullopt);  // which the command knows more about
}

TEST_F(HandedOver, what_does_not_go_together_is_refused) {
  EXPECT_EQ(refusal("explain", "choir: {voices: 4}\n"),
            "error: explain has no answer for jobs with the section 'choir'\n  what does: predict, simulate");
  EXPECT_EQ(refusal("simulate", "choir: {voices: 4}\n", "--fault 'gpu 1 slow 2'"),
            "error: --fault is not for jobs with the section 'choir'");
  EXPECT_EQ(refusal("predict", "model: llama3-8b\n", "--encore 2"),
            "error: --encore is for jobs with the section 'choir', and this one is a training job");
  EXPECT_NE(refusal("predict", "choir: {voices: 0}\n").find("job.yaml:1:17"), std::string::npos);
}

}  // namespace
}  // namespace rehearse::sim
