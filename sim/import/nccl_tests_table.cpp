#include "sim/import/nccl_tests_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <set>

#include "sim/import/text_file.hpp"

namespace rehearse::sim {
namespace {

struct Word {
  std::string text;
  int column = 0;
};

std::vector<Word> words_of(const std::string& line) {
  std::vector<Word> words;
  for (std::size_t at = 0; at < line.size();) {
    const std::size_t start = line.find_first_not_of(" \t\r", at);
    if (start == std::string::npos) break;
    const std::size_t end = std::min(line.find_first_of(" \t\r", start), line.size());
    words.push_back({line.substr(start, end - start), static_cast<int>(start) + 1});
    at = end;
  }
  return words;
}

struct Kind {
  const char* name;
  int rounds;  // times n - 1
  bool doubled;
};
constexpr std::array kinds{Kind{"all_reduce", 2, true}, Kind{"all_gather", 1, false}, Kind{"reduce_scatter", 1, false},
                           Kind{"alltoall", 1, false}};

double bus_factor(const std::string& collective, int ranks) {
  const double share = static_cast<double>(ranks - 1) / ranks;
  return collective == "all_reduce" ? 2 * share : share;
}

class Reader {
 public:
  explicit Reader(const TextFile& file) : file_(file) {}

  NcclTestsTable read() {
    for (std::size_t i = 0; i < file_.source->lines.size(); ++i) {
      const std::string& line = file_.source->lines[i];
      const std::vector<Word> words = words_of(line);
      if (words.empty()) continue;
      words[0].text.starts_with('#') ? comment(line, words) : row(words, static_cast<int>(i) + 1);
    }
    if (table_.rows.empty())
      file_.fail(1, 1, "no line here is a row of nccl-tests", "its columns are size, count, type, redop, root, time, algbw, busbw");
    if (table_.ranks < 2) file_.fail(1, 1, "fewer than two lines '#  Rank ...' say who took part");
    table_.hosts = static_cast<int>(hosts_.size());
    check();
    return std::move(table_);
  }

 private:
  // "#  Rank  0 Group  0 Pid  7 on  node1 device  0 [0x1b] NVIDIA H100 80GB HBM3"; "# Collective test starting: all_reduce_perf".
  void comment(const std::string& line, const std::vector<Word>& words) {
    for (const Kind& kind : kinds) {
      if (line.find(std::string(kind.name) + "_perf") != std::string::npos) table_.collective = kind.name;
    }
    const auto rank = std::ranges::find(words, "Rank", &Word::text), on = std::ranges::find(words, "on", &Word::text);
    if (rank == words.end() || on == words.end() || on + 1 == words.end()) return;
    ++table_.ranks;
    hosts_.insert((on + 1)->text);
    const std::size_t bracket = line.find("] ");
    if (table_.device.empty() && bracket != std::string::npos) {
      table_.device = line.substr(bracket + 2);
      while (table_.device.ends_with(' ') || table_.device.ends_with('\r')) table_.device.pop_back();
    }
  }

  double number(const Word& word, int line) const {
    char* end = nullptr;
    const double value = std::strtod(word.text.c_str(), &end);
    if (end == word.text.c_str() || *end != '\0' || !std::isfinite(value) || value < 0) {
      file_.fail(line, word.column, fmt::format("{} is no number of 0 or more", config::shown(word.text)));
    }
    return value;
  }

  // Behind size and count the first number with a point: the time, or algbw, as times from 10,000 us on are printed without one.
  static std::size_t column_of_time(const std::vector<Word>& words) {
    const auto has_point = [&](std::size_t i) { return i < words.size() && words[i].text.find('.') != std::string::npos; };
    std::size_t at = 2;
    while (at < words.size() && !has_point(at)) ++at;
    const auto is_whole_time = [](const std::string& text) {
      return text.size() >= 5 && text.find_first_not_of("0123456789") == std::string::npos;
    };
    return at < words.size() && at > 2 && !has_point(at + 2) && is_whole_time(words[at - 1].text) ? at - 1 : at;
  }

  // size count type redop root | time algbw busbw #wrong | time algbw busbw #wrong. Older versions leave redop and root out.
  void row(const std::vector<Word>& words, int line) {
    if (words[0].text.find_first_not_of("0123456789") != std::string::npos) {
      file_.fail(line, words[0].column, fmt::format("{} is no size", config::shown(words[0].text)),
                 "a table begins with a number of bytes");
    }
    const std::size_t first = column_of_time(words);
    if (first + 2 >= words.size()) file_.fail(line, words.back().column, "the row is cut off", "time, algbw and busbw are missing");
    NcclTestsRow out{number(words[0], line), number(words[first], line) * 1e-6, number(words[first + 1], line) * 1e9,
                     number(words[first + 2], line) * 1e9, line};
    if (out.bytes == 0) return;
    if (out.time_s <= 0) file_.fail(line, words[first].column, "a time must be above 0");
    if (!table_.rows.empty() && table_.rows.back().bytes >= out.bytes) file_.fail(line, words[0].column, "sizes must ascend");
    // Printed with two digits behind the point.
    const double algbw = out.bytes / out.time_s;
    if (std::abs(algbw - out.algbw_bytes_per_s) > 0.02 * algbw + 0.006e9) {
      file_.fail(line, words[first + 1].column, fmt::format("algbw does not follow from size and time, {:.2f} GB/s", algbw / 1e9));
    }
    table_.rows.push_back(out);
  }

  // busbw is algbw by the factor of the collective.
  void check() {
    const NcclTestsRow& largest = table_.rows.back();
    const double factor = largest.busbw_bytes_per_s / largest.algbw_bytes_per_s;
    if (table_.collective.empty())
      table_.collective = std::abs(factor - bus_factor("all_reduce", table_.ranks)) < 0.02 ? "all_reduce" : "all_gather";
    const double expected = bus_factor(table_.collective, table_.ranks);
    if (std::abs(factor - expected) > 0.02) {
      file_.fail(largest.line, 1,
                 fmt::format("busbw is {:.3f} of algbw, of {} over {} ranks {:.3f}", factor, table_.collective, table_.ranks, expected));
    }
  }

  const TextFile& file_;
  NcclTestsTable table_;
  std::set<std::string> hosts_;
};

}  // namespace

NcclTestsTable read_nccl_tests(const std::string& path) {
  const TextFile file = load_text_file(path);
  return Reader(file).read();
}

AlphaBeta fit_alpha_beta(const NcclTestsTable& table) {
  const double rounds = (table.collective == "all_reduce" ? 2.0 : 1.0) * (table.ranks - 1),
               factor = bus_factor(table.collective, table.ranks);
  // Unknowns alpha and 1/B; each row divided by its time.
  double aa = 0, ab = 0, bb = 0, a1 = 0, b1 = 0;
  for (const NcclTestsRow& row : table.rows) {
    const double a = rounds / row.time_s, b = factor * row.bytes / row.time_s;
    aa += a * a;
    ab += a * b;
    bb += b * b;
    a1 += a;
    b1 += b;
  }
  const double determinant = aa * bb - ab * ab;
  if (table.rows.size() < 2 || determinant <= 1e-12 * aa * bb) throw config::InputError("alpha and beta need rows of at least two sizes");
  AlphaBeta fit{(a1 * bb - b1 * ab) / determinant, determinant / (aa * b1 - ab * a1), 0};
  if (fit.alpha_s <= 0 || fit.bytes_per_s <= 0) throw config::InputError("the times do not grow with the sizes as alpha + beta S");
  for (const NcclTestsRow& row : table.rows) {
    const double modelled = rounds * fit.alpha_s + factor * row.bytes / fit.bytes_per_s;
    fit.worst_residual = std::max(fit.worst_residual, std::abs(modelled / row.time_s - 1));
  }
  return fit;
}

}  // namespace rehearse::sim
