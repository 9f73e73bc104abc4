// What instances and links did over time, for those who write or draw it. Its memory is bounded by the deployment, not by the load: levels
// are rows of growing length (level_series.hpp), a run of passes is one slice, and of slices a bounded number is kept.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "sim/serving/instance.hpp"
#include "sim/serving/level_series.hpp"
#include "sim/serving/transfers.hpp"

namespace rehearse::sim {

// A run of passes of an instance.
struct PassSlice {
  std::size_t instance = 0;  // among all
  double start_s = 0, end_s = 0;
  PassRun run;
  bool cut = false;  // the instance failed before its end
};

// A cache on its way, on a track of its sender on which nothing else is meanwhile.
struct HandOverSlice {
  RequestId request = 0;
  std::size_t from = 0, to = 0, track = 0;
  double start_s = 0, end_s = 0, bytes = 0;
  bool arrived = true;  // else given up
};

struct Outage {
  std::size_t instance = 0;
  double at_s = 0;
  bool fails = true;  // else it is back
};

// Of a link, of all hand-overs that ended on it.
struct LinkUse {
  double bytes = 0;
  std::int64_t hand_overs = 0;
  double busy_s = 0;  // in which there was at least one
  int most_at_once = 0;
  double worst_wait_s = 0;  // that a hand-over took longer than it does alone
};

enum class Level : std::size_t { pages, running, waiting, held };  // of LevelSeries

class ServiceRecord {
 public:
  static constexpr std::size_t most_slices = 200'000;
  // links: rates, bytes a second.
  ServiceRecord(std::size_t instances, double slices_from_s, std::vector<double> links = {})
      : slices_from_s_(slices_from_s), levels_(instances), tracks_(instances), rates_(std::move(links)) {}

  void level(std::size_t instance, double now_s, const Instance& of) { levels_[instance].set(now_s, levels_of(of, now_s)); }
  // Its pages have grown with the passes under way, which end now.
  void pages_grew(std::size_t instance, double now_s, std::int64_t pages);
  void passes(std::size_t instance, double now_s, const PassRun& run, bool cut);
  void outage(std::size_t instance, double now_s, bool fails);
  // Of a cache or a piece of one, by a number that no other has meanwhile.
  void hand_over_begins(std::size_t piece, RequestId id, std::size_t from, std::size_t to, double now_s);
  void flows_begin(std::size_t piece, double now_s, const HandOver& hand_over);
  void flows_end(std::size_t piece, double now_s);
  void hand_over_ends(std::size_t piece, double now_s, bool arrived);
  void end(double now_s);  // of the last answer

  [[nodiscard]] const std::vector<LevelSeries>& levels() const { return levels_; }  // [instance], up to the same time
  [[nodiscard]] const std::vector<PassSlice>& pass_slices() const { return passes_; }
  [[nodiscard]] const std::vector<HandOverSlice>& hand_over_slices() const { return hand_overs_; }
  [[nodiscard]] const std::vector<Outage>& outages() const { return outages_; }
  [[nodiscard]] const std::map<LinkIndex, LinkUse>& links() const { return links_; }
  [[nodiscard]] double slices_from_s() const { return slices_from_s_; }
  [[nodiscard]] double slices_until_s() const { return full_s_ >= 0 ? full_s_ : end_s_; }  // where they ended or were too many
  [[nodiscard]] bool is_cut() const { return full_s_ >= 0; }
  [[nodiscard]] double end_s() const { return end_s_; }

 private:
  struct OnTheWay {
    HandOverSlice slice;
    std::map<LinkIndex, double> bytes;  // while its flows run
    double flows_s = 0, alone_s = 0;    // when they began, and how long they take alone
  };
  struct Sharing {
    int now = 0;
    double since_s = 0;
  };
  [[nodiscard]] static LevelSeries::Levels levels_of(const Instance& of, double now_s);
  [[nodiscard]] bool keeps_slice(double start_s, double now_s);
  void leave_links(OnTheWay& way, double now_s, bool arrived);

  double slices_from_s_, full_s_ = -1, end_s_ = 0;
  std::vector<LevelSeries> levels_;
  std::vector<std::vector<bool>> tracks_;      // [instance][track] taken
  std::map<std::size_t, OnTheWay> under_way_;  // by piece
  std::vector<PassSlice> passes_;
  std::vector<HandOverSlice> hand_overs_;
  std::vector<Outage> outages_;
  std::map<LinkIndex, LinkUse> links_;
  std::map<LinkIndex, Sharing> sharing_;
  std::vector<double> rates_;
};

}  // namespace rehearse::sim
