// What is wrong in a job is refused where it stands, with the device's name where it is a device's.
#include <gtest/gtest.h>

#include <fstream>

#include "sim/federated/faults.hpp"
#include "sim/federated/plan.hpp"
#include "tests/federated/jobs.hpp"

namespace rehearse::federated {
namespace {

std::string with_devices(const std::string& devices, const std::string& more = "") {
  return "model: resnet18-cifar\nfederated:\n  devices: " + devices + "\n  server: {speed: 1 TFLOP/s}\n" + more;
}

const std::string usual = "[{name: pi, speed: 9 GFLOP/s, samples: 10, uplink: 10 Mbps, downlink: 10 Mbps}]";

std::string refusal(const std::string& text) {
  try {
    static_cast<void>(make_plan(job_from(text)));
  } catch (const config::InputError& error) {
    return error.what();
  }
  return "";
}

void expect_refused(const std::string& text, const std::string& words) {
  const std::string message = refusal(text);
  EXPECT_NE(message.find(words), std::string::npos) << "wanted: " << words << "\ngot: " << message;
  EXPECT_NE(message.find("job.yaml:"), std::string::npos) << message;
}

std::string file_of(const std::string& name, const std::string& content) {
  std::string path = testing::TempDir() + name;
  std::ofstream(path) << content;
  return path;
}

TEST(IsABadJobRefused, devices) {
  EXPECT_EQ(refusal(with_devices(usual)), "");
  expect_refused(with_devices("[{name: pi, speed: 0 GFLOP/s, samples: 10, uplink: 10 Mbps, downlink: 10 Mbps}]"),
                 "device 'pi' has a speed of 0");
  expect_refused(with_devices("[{name: pi, speed: 9 GFLOP/s, samples: 10, uplink: 0 Mbps, downlink: 10 Mbps}]"),
                 "device 'pi' has an uplink of 0");
  expect_refused(with_devices("[{name: pi, speed: 9 GFLOP/s, samples: 10, uplink: 10 Mbps}]"), "device 'pi' has no downlink");
  expect_refused(with_devices("[{name: pi, speed: 9 GFLOP/s, samples: 0, uplink: 10 Mbps, downlink: 10 Mbps}]"), "samples");
  expect_refused(with_devices("[{name: pi, speed: 9 GFLOP/s, sampels: 9, samples: 1, uplink: 1 Mbps, downlink: 1 Mbps}]"), "samples");
  expect_refused(with_devices("[{name: pi, count: 1000001, speed: 9 GFLOP/s, samples: 1, uplink: 1 Mbps, downlink: 1 Mbps}]"), "1000000");
  expect_refused(
      with_devices("[{name: pi, speed: 9 GFLOP/s, samples: 1, uplink: 1 Mbps, downlink: 1 Mbps}, {name: pi, speed: 9 GFLOP/s, samples: "
                   "1, uplink: 1 Mbps, downlink: 1 Mbps}]"),
      "device 'pi' is listed twice");
  expect_refused(with_devices("[]"), "no devices");
}

TEST(IsABadJobRefused, cuts_and_limits) {
  expect_refused(
      with_devices(
          "[{name: pi, count: 3, speed: 9 GFLOP/s, samples: 10, uplink: 10 Mbps, downlink: 10 Mbps, leakage: 0.1, memory: 30 MiB}]"),
      "device 'pi 1' has no cut within its leakage limit of 0.1 and its memory");
  expect_refused(with_devices(usual, "  cuts: blok3\n"), "did you mean 'block3'");
  expect_refused(with_devices(usual, "  cuts: {pii: block3}\n"), "did you mean 'pi'");
  expect_refused(with_devices(usual, "  leakage: {limit: 0.5}\n  cuts: stem\n"), "device 'pi' may not cut at 'stem'");
  expect_refused(with_devices(usual, "  leakage: {measure: table}\n"), "has no leakage");
  expect_refused("model: deepseek-v3\nfederated:\n  devices: " + usual + "\n  server: {speed: 1 TFLOP/s}\n  sequence: 128\n",
                 "has experts");
  expect_refused("model: llama3-8b\nfederated:\n  devices: " + usual + "\n  server: {speed: 1 TFLOP/s}\n", "needs federated.sequence");
  expect_refused(
      "model: {kind: chain, tied: true, units: [{name: a, linear: {in: 4, out: 4}}, {name: b, linear: {in: 4, out: 4}}]}\nfederated:\n  "
      "devices: " +
          usual + "\n  server: {speed: 1 TFLOP/s}\n  cuts: a\n",
      "tied embeddings");
  expect_refused(
      "model: {kind: chain, units: [{name: a, linear: {in: 4, out: 4}}, {name: a, linear: {in: 4, out: 4}}]}\nfederated:\n  devices: " +
          usual + "\n  server: {speed: 1 TFLOP/s}\n",
      "'a' is taken");
}

TEST(IsABadJobRefused, what_does_not_go_together) {
  expect_refused(with_devices(usual, "  radio: {fading: rayleigh}\n"), "device 'pi' has rates");
  expect_refused(with_devices(usual, "  radio: {power: total}\n"), "needs the distance of every device");
  expect_refused(with_devices(usual, "  select: {devices: 7}\n"), "7 of 1 devices");
  expect_refused(
      "model: resnet18-cifar\nfederated:\n  devices: " + usual + "\n  server: {speed: 1 TFLOP/s, mode: batched}\n  cuts: random\n",
      "one cut for all");
  expect_refused(with_devices(usual, "cluster: dgx-h100\n"), "cluster");
  expect_refused(with_devices(usual, "  dropout: 1 /round\n"), "leaves nobody");
  expect_refused(with_devices(usual, "  broadcast: true\n"), "needs the gradients of all at once");
}

TEST(IsABadJobRefused, shares_of_a_file) {
  const auto job = [](const std::string& path) {
    return with_devices("[{name: pi, count: 2, speed: 9 GFLOP/s, samples: 10, uplink: 10 Mbps, downlink: 10 Mbps}]",
                        "  shares: {file: " + path + "}\n");
  };
  const std::string titles = "name,uplink,downlink,server\n";
  EXPECT_EQ(refusal(job(file_of("good.csv", titles + "pi 1,0.5,0.5,0.5\npi 2,0.5,0.5,0.5\n"))), "");
  const auto says = [&](const std::string& content, const std::string& words) {
    const std::string message = refusal(job(file_of("bad.csv", content)));
    EXPECT_NE(message.find(words), std::string::npos) << message;
  };
  says(titles + "pi 1,0.5,0.6,0.5\npi 2,0.5,0.5,0.5\n", "the shares of the downlink add up to 1.1 with device 'pi 2', more than 1");
  says(titles + "pi 1,0.5,0.5,0.5\n", "device 'pi 2' has no row");
  says(titles + "pi 1,0.5,0.5,0.5\npi 2,0,0.5,0.5\n", "device 'pi 2' has a share of 0 of what it uses");
  says(titles + "pi 1,0.5,x,0.5\npi 2,0,0.5,0.5\n", "bad.csv:2:10: error: device 'pi 1': downlink must be a number from 0 to 1");
  says("device,uplink\n", "unknown column 'device'");
}

TEST(IsABadJobRefused, cuts_of_a_file) {
  const auto says = [](const std::string& content, const std::string& words) {
    const std::string message =
        refusal(with_devices("[{name: pi, count: 2, speed: 9 GFLOP/s, samples: 10, uplink: 10 Mbps, downlink: 10 Mbps}]",
                             "  leakage: {limit: 0.95}\n  cuts: {file: " + file_of("cuts.csv", content) + "}\n"));
    EXPECT_NE(message.find(words), std::string::npos) << "wanted: " << words << "\ngot: " << message;
  };
  says("name,cut\npi 1,block4\n", "device 'pi 2' has no cut");
  says("name,cut\npi 1,block4\npi 1,block4\n", "cuts.csv:3:1: error: device 'pi 1' stands twice");
  says("name,cut\npi 3,block4\n", "cuts.csv:2:1: error: no device is called 'pi 3'");
  says("name,cut\npi 1,blok4\n", "did you mean 'block4'");
  says("name,cut\npi 1,stem\npi 2,block4\n", "cuts.csv:2:6: error: device 'pi 1' may not cut at 'stem'");
  says("name\npi 1\n", "column 'cut' is missing");
}

TEST(IsABadJobRefused, rates_over_time) {
  const auto says = [](const std::string& rates, const std::string& words) {
    const std::string message = refusal(with_devices(usual, "  radio: {rates: " + rates + "}\n"));
    EXPECT_NE(message.find(words), std::string::npos) << "wanted: " << words << "\ngot: " << message;
  };
  says("[[0, pi, 1e6]]", "a row of rates is [time_s, device");
  says("[[0, pj, 1e6, 1e6]]", "no device is called 'pj'");
  says("[[5, pi, 1e6, 1e6], [4, pi, 1e6, 1e6]]", "device 'pi': earlier than its row before");
  says("[[5, pi, 0, 1e6]]", "0.001");
  says("nowhere.csv", "cannot read");
  says(file_of("rates.csv", "time_s,device,uplink_bytes_per_s,downlink_bytes_per_s\n0,pi,1e6,fast\n"),
       "rates.csv:2:10: error: downlink_bytes_per_s");
  says(file_of("rates.csv", "time_s,device,uplink_bytes_per_s,downlink_bytes_per_s\n"), "no rates below the titles");
}

TEST(IsABadJobRefused, devices_of_a_file) {
  const auto says = [](const std::string& content, const std::string& words) {
    const std::string message = refusal(with_devices("{file: " + file_of("devices.csv", content) + "}"));
    EXPECT_NE(message.find(words), std::string::npos) << "wanted: " << words << "\ngot: " << message;
  };
  const std::string titles = "name,count,ms_per_sample,uplink_bytes_per_s,downlink_bytes_per_s,samples\n";
  EXPECT_EQ(refusal(with_devices("{file: " + file_of("devices.csv", titles + "a,3,5,1e6,2e6,100\n") + "}")), "");
  says(titles + "a,3,5,1e6,2e6\n", "5 cells in a table of 6 columns");
  says(titles + "a,3,five,1e6,2e6,100\n", "device 'a': ms_per_sample must be a number");
  says(titles + "a,3,5,0,2e6,100\n", "device 'a 1' has an uplink of 0");
  says(titles + "a,2.5,5,1e6,2e6,100\n", "device 'a': count must be a whole number");
  says("name,speed,uplink_bytes_per_s,downlink_bytes_per_s,samples\n", "unknown column 'speed'");
  says("", "must begin with the titles of its columns");
  says(titles, "no devices below the titles");
}

TEST(IsABadJobRefused, faults) {
  const Job job = job_from(with_devices(usual));
  const auto says = [&](const std::string& fault, const std::string& words) {
    try {
      static_cast<void>(conditions_of(job, {fault}));
      ADD_FAILURE() << fault << " was taken";
    } catch (const config::InputError& error) {
      EXPECT_NE(std::string(error.what()).find(words), std::string::npos) << error.what();
    }
  };
  says("device 4 slow 2", "there are devices 0 to 0");
  says("device po slow 2", "no device is called 'po'");
  says("device 0 slow 0.5", "a factor is a number from 1 to 1e6");
  says("uplink at 3 s", "only devices and the server fail");
  says("rail 0 slow 2", "unknown component 'rail'");
  says("device 0 at 3", "unit");
  says("device 0 slow 2 now", "'now' is neither from nor for");
  says("server", "slow or at is missing");
}

}  // namespace
}  // namespace rehearse::federated
