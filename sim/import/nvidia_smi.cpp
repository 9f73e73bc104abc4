// `nvidia-smi topo -m`: a matrix of GPUs and NICs.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "config/tree.hpp"
#include "sim/import/importer.hpp"
#include "sim/import/node_facts.hpp"
#include "sim/import/text_file.hpp"

namespace rehearse::sim {
namespace {

constexpr std::array distances{"PIX", "PXB", "PHB", "NODE", "SYS"};  // nearest first

// Underlines and colours.
std::string without_escapes(const std::string& text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\x1b') {
      out += text[i];
      continue;
    }
    if (i + 1 < text.size() && text[i + 1] == '[') ++i;
    while (i + 1 < text.size() && std::isalpha(static_cast<unsigned char>(text[i + 1])) == 0 && text[i + 1] != '\n') ++i;
    ++i;
  }
  return out;
}

std::vector<std::string> words_of_line(const std::string& line) {
  std::vector<std::string> words;
  std::string word;
  for (const char c : line + ' ') {
    if (c != ' ' && c != '\t' && c != '\r') {
      word += c;
    } else if (!word.empty()) {
      words.push_back(std::move(word));
      word.clear();
    }
  }
  return words;
}

bool is_device(const std::string& word, std::string_view kind) {
  return word.size() > kind.size() && word.starts_with(kind) && word.size() < kind.size() + 4 &&
         word.find_first_not_of("0123456789", kind.size()) == std::string::npos;
}
// Older drivers call ports by their names.
bool is_port(const std::string& word) {
  return is_device(word, "NIC") || word.starts_with("mlx") || word.starts_with("irdma") || word.starts_with("bnxt") ||
         word.starts_with("rdma");
}

class Matrix {
 public:
  explicit Matrix(const TextFile& file) : file_(file) {
    const std::vector<std::string>& lines = file.source->lines;
    std::size_t i = 0;
    while (i < lines.size() && !is_header(words_of_line(lines[i]))) ++i;
    if (i == lines.size()) file.fail(1, 1, "no line begins with GPU0 as `nvidia-smi topo -m` prints it");
    for (const std::string& word : words_of_line(lines[i])) {
      if (is_device(word, "GPU") && columns_.size() == gpus_) ++gpus_;
      if (is_device(word, "GPU") || is_port(word)) columns_.push_back(word);
    }
    for (++i; i < lines.size(); ++i) read_row(lines[i], static_cast<int>(i) + 1);
    for (std::size_t g = 0; g < gpus_; ++g) {
      if (rows_.size() <= g) file.fail(static_cast<int>(lines.size()), 1, fmt::format("the row of {} is missing", columns_[g]));
    }
  }

  NodeFacts facts() {
    NodeFacts facts;
    facts.gpus = static_cast<int>(gpus_);
    read_wire(facts);
    read_ports(facts);
    return facts;
  }

 private:
  static bool is_header(const std::vector<std::string>& words) {
    return !words.empty() && words[0] == "GPU0" && (words.size() == 1 || words[1] != "X");
  }

  void read_row(const std::string& line, int number) {
    const std::vector<std::string> words = words_of_line(line);
    if (words.empty() || rows_.size() == gpus_ || !is_device(words[0], "GPU")) return;
    if (words[0] != columns_[rows_.size()]) file_.fail(number, 1, fmt::format("this should be the row of {}", columns_[rows_.size()]));
    if (words.size() < columns_.size() + 1) file_.fail(number, 1, fmt::format("{} of {} entries", words.size() - 1, columns_.size()));
    std::vector<std::string> row(words.begin() + 1, words.begin() + 1 + static_cast<std::ptrdiff_t>(columns_.size()));
    for (std::size_t c = 0; c < row.size(); ++c) {
      const bool link = row[c].size() > 2 && row[c].starts_with("NV") && row[c].size() < 5 &&
                        row[c].find_first_not_of("0123456789", 2) == std::string::npos;
      const bool self = row[c] == "X", known = std::ranges::find(distances, row[c]) != distances.end();
      if (self != (c == rows_.size()) || (!self && !link && !known)) {
        const std::size_t at = line.find(row[c]);
        file_.fail(number, static_cast<int>(at == std::string::npos ? 0 : at) + 1,
                   fmt::format("{} between {} and {}", config::shown(row[c]), words[0], columns_[c]), "X, NV#, PIX, PXB, PHB, NODE or SYS");
      }
    }
    rows_.push_back(std::move(row));
    lines_.push_back(number);
  }

  [[nodiscard]] int links(std::size_t a, std::size_t b) const {
    const std::string& entry = rows_[a][b];
    return entry.starts_with("NV") ? std::stoi(entry.substr(2)) : 0;
  }

  // On switches all links of a GPU show at every other one; without them their sum is what a GPU has (18 at most).
  void read_wire(NodeFacts& facts) {
    if (gpus_ < 2) return;
    const int first = links(0, 1);
    for (std::size_t a = 0; a < gpus_; ++a) {
      for (std::size_t b = 0; b < gpus_; ++b) {
        if (a == b || links(a, b) == first) continue;
        file_.fail(lines_[a], 1,
                   fmt::format("{} and {} are linked otherwise than GPU0 and GPU1, which is not simulated", columns_[a], columns_[b]));
      }
    }
    facts.links = first;
    if (first == 0) {
      facts.wire = NodeFacts::Wire::pcie;
      return;
    }
    const bool mesh = first * static_cast<int>(gpus_ - 1) <= 12 && first < 6;
    facts.wire = mesh ? NodeFacts::Wire::mesh : NodeFacts::Wire::nvswitch;
    // 6 links: V100, 12: A100. 18 are an H100's, an H200's or, twice as fast, a B200's.
    facts.compute = first == 6 ? 70 : first == 12 || mesh ? 80 : 0;
    facts.wire_gb_per_s = facts.compute > 0 ? nvlink_gb_per_s(facts.compute) * first : 0;
  }

  // Of each GPU the nearest port; those that no GPU is nearest to serve storage and management.
  void read_ports(NodeFacts& facts) {
    const std::size_t ports = columns_.size() - gpus_;
    std::vector<int> used;
    for (std::size_t g = 0; g < gpus_ && ports > 0; ++g) {
      int best = -1;
      for (std::size_t p = 0; p < ports; ++p) {
        const bool taken = std::ranges::find(used, static_cast<int>(p)) != used.end();
        const int rank = 2 * distance(g, p) + (taken ? 1 : 0);
        if (best < 0 || rank < 2 * distance(g, static_cast<std::size_t>(best)) + (std::ranges::find(used, best) != used.end() ? 1 : 0))
          best = static_cast<int>(p);
      }
      facts.rails.push_back(best);
      used.push_back(best);
    }
    std::ranges::sort(used);
    used.erase(std::unique(used.begin(), used.end()), used.end());
    facts.nics = static_cast<int>(used.size());
    for (int& rail : facts.rails) rail = static_cast<int>(std::ranges::find(used, rail) - used.begin());
  }
  [[nodiscard]] int distance(std::size_t gpu, std::size_t port) const {
    return static_cast<int>(std::ranges::find(distances, rows_[gpu][gpus_ + port]) - distances.begin());
  }

  const TextFile& file_;
  std::size_t gpus_ = 0;
  std::vector<std::string> columns_;
  std::vector<std::vector<std::string>> rows_;
  std::vector<int> lines_;
};

class NvidiaSmi final : public Importer {
 public:
  [[nodiscard]] std::string_view summary() const override { return "a cluster, from what `nvidia-smi topo -m` prints on one node"; }
  [[nodiscard]] Draft read(const ImportRequest& request) const override {
    const TextFile file = text_file(without_escapes(config::read_file_text(request.path)), request.path);
    Draft draft(Draft::Kind::cluster);
    describe_node(Matrix(file).facts(), draft);
    return draft;
  }
};

const ImporterRegistry::Registration<NvidiaSmi> nvidia_smi_registration("nvidia-smi");

}  // namespace
}  // namespace rehearse::sim
