#include "smpi_run.hpp"

#include <unistd.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <stdexcept>

namespace rehearse::tests {
namespace {

// A folder of its own for every run, gone with it.
class Scratch {
 public:
  Scratch() {
    std::string name = (std::filesystem::temp_directory_path() / "rehearse-smpi-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary folder");
    path_ = name;
  }
  ~Scratch() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  [[nodiscard]] std::string file(const std::string& name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

void write_link(std::ostream& out, const char* kind, int rank, double bytes_per_s, double latency_s) {
  out << "<link id=\"" << kind << rank << "\" bandwidth=\"" << bytes_per_s << "Bps\" latency=\"" << latency_s
      << "s\" sharing_policy=\"SPLITDUPLEX\"/>\n";
}

void write_route(std::ostream& out, const SmpiFabric& fabric, int from, int to) {
  const char* kind = from / fabric.per_domain == to / fabric.per_domain ? "port" : "nic";
  out << "<route src=\"h" << from << "\" dst=\"h" << to << "\" symmetrical=\"NO\"><link_ctn id=\"" << kind << from
      << "\" direction=\"UP\"/><link_ctn id=\"" << kind << to << "\" direction=\"DOWN\"/></route>\n";
}

// A route has two links, so each carries half of alpha.
void write_platform(const SmpiFabric& fabric, const std::string& path) {
  std::ofstream out(path);
  out.precision(17);
  out << "<?xml version='1.0'?>\n<!DOCTYPE platform SYSTEM \"https://simgrid.org/simgrid.dtd\">\n"
      << "<platform version=\"4.1\">\n<zone id=\"z\" routing=\"Full\">\n";
  for (int rank = 0; rank < fabric.ranks; ++rank) out << "<host id=\"h" << rank << "\" speed=\"1Gf\"/>\n";
  for (int rank = 0; rank < fabric.ranks; ++rank) {
    write_link(out, "port", rank, fabric.intra_bytes_per_s, fabric.alpha_intra_s / 2);
    write_link(out, "nic", rank, fabric.inter_bytes_per_s, fabric.alpha_inter_s / 2);
  }
  for (int from = 0; from < fabric.ranks; ++from) {
    for (int to = 0; to < fabric.ranks; ++to) {
      if (from != to) write_route(out, fabric, from, to);
    }
  }
  out << "</zone>\n</platform>\n";
}

void write_hosts(const SmpiFabric& fabric, const std::string& path) {
  std::ofstream out(path);
  for (int rank = 0; rank < fabric.ranks; ++rank) out << "h" << rank << "\n";
}

// A transfer takes latency + size/bandwidth exactly; sending, receiving and computing cost the CPU nothing; every message is rendezvous.
constexpr const char* exact_model =
    " --cfg=network/model:CM02 --cfg=network/crosstraffic:0 --cfg=network/TCP-gamma:0 --cfg=network/latency-factor:1"
    " --cfg=network/bandwidth-factor:1 --cfg=network/weight-S:0 --cfg=smpi/simulate-computation:no --cfg=smpi/os:0:0:0 --cfg=smpi/or:0:0:0"
    " --cfg=smpi/ois:0:0:0 --cfg=smpi/wtime:0 --cfg=smpi/send-is-detached-thresh:0 --log=root.thresh:critical";

std::string command(const SmpiFabric& fabric, const Scratch& scratch, const std::string& collective, long bytes,
                    const std::string& algorithms) {
  std::ostringstream out;
  out << REHEARSE_SMPIRUN << " -np " << fabric.ranks << " -platform " << scratch.file("platform.xml") << " -hostfile "
      << scratch.file("hosts") << " --cfg=smpi/tmpdir:" << scratch.file("") << exact_model;
  std::istringstream words(algorithms);
  for (std::string word; words >> word;) out << " --cfg=smpi/" << word;
  out << " " << REHEARSE_SMPI_PROGRAM << " " << collective << " " << bytes << " " << fabric.per_domain << " 2>&1";
  return out.str();
}

std::string output_of(const std::string& command) {
  struct Close {
    void operator()(std::FILE* file) const { pclose(file); }
  };
  const std::unique_ptr<std::FILE, Close> pipe(popen(command.c_str(), "r"));
  if (!pipe) throw std::runtime_error("cannot run " + command);
  std::string out;
  std::array<char, 4096> part{};
  while (std::fgets(part.data(), static_cast<int>(part.size()), pipe.get()) != nullptr) out += part.data();
  return out;
}

}  // namespace

double smpi_seconds(const SmpiFabric& fabric, const std::string& collective, long bytes, const std::string& algorithms) {
  const Scratch scratch;
  write_platform(fabric, scratch.file("platform.xml"));
  write_hosts(fabric, scratch.file("hosts"));
  const std::string line = command(fabric, scratch, collective, bytes, algorithms);
  const std::string said = output_of(line);
  std::size_t used = 0;
  try {
    const double seconds = std::stod(said, &used);
    if (used + 1 == said.size()) return seconds;
  } catch (const std::logic_error&) {
  }
  throw std::runtime_error(line + "\n" + said);
}

}  // namespace rehearse::tests
