// What happens when, earliest first, and at one instant in the order in which it was first put in. Entries can be moved and taken out.
#pragma once

#include <cstdint>
#include <vector>

namespace rehearse::sim {

class EventHeap {
 public:
  using Event = std::uint32_t;  // chosen by the caller: small numbers, each at most once in the heap

  [[nodiscard]] bool empty() const { return entries_.empty(); }
  [[nodiscard]] double first_at_s() const { return entries_.front().at_s; }
  [[nodiscard]] Event first() const { return entries_.front().event; }

  void insert(Event event, double at_s) {
    if (event >= places_.size()) places_.resize(event + 1UL, absent);
    entries_.push_back({});
    up(entries_.size() - 1, {at_s, next_++, event});
  }
  // Later or earlier, without losing its turn among those of one instant.
  void move(Event event, double at_s) {
    const std::size_t place = places_[event];
    Entry entry = entries_[place];
    entry.at_s = at_s;
    at_s < entries_[place].at_s ? up(place, entry) : down(place, entry);
  }
  void erase(Event event) {
    const std::size_t place = places_[event];
    places_[event] = absent;
    const Entry last = entries_.back();
    entries_.pop_back();
    if (place == entries_.size()) return;
    place > 0 && last < entries_[parent(place)] ? up(place, last) : down(place, last);
  }
  Event pop() {
    const Event event = entries_.front().event;
    erase(event);
    return event;
  }
  [[nodiscard]] double at_s(Event event) const { return entries_[places_[event]].at_s; }
  [[nodiscard]] bool contains(Event event) const { return event < places_.size() && places_[event] != absent; }

 private:
  struct Entry {
    double at_s = 0;
    std::uint64_t turn = 0;
    Event event = 0;
    // Without a branch: which of several comes first is not to be guessed, and is asked at each step down the heap.
    bool operator<(const Entry& other) const {
      const auto earlier = static_cast<unsigned>(at_s < other.at_s), same = static_cast<unsigned>(at_s == other.at_s);
      return (earlier | (same & static_cast<unsigned>(turn < other.turn))) != 0;
    }
  };
  static constexpr std::size_t ways = 4;
  static constexpr std::uint32_t absent = ~std::uint32_t{0};
  static std::size_t parent(std::size_t place) { return (place - 1) / ways; }

  void put(std::size_t place, const Entry& entry) {
    entries_[place] = entry;
    places_[entry.event] = static_cast<std::uint32_t>(place);
  }
  void up(std::size_t place, const Entry& entry) {
    for (; place > 0 && entry < entries_[parent(place)]; place = parent(place)) put(place, entries_[parent(place)]);
    put(place, entry);
  }
  void down(std::size_t place, const Entry& entry) {
    while (true) {
      const std::size_t first = place * ways + 1;
      if (first >= entries_.size()) break;
      std::size_t least = first;
      for (std::size_t child = first + 1; child < first + ways && child < entries_.size(); ++child) {
        least = entries_[child] < entries_[least] ? child : least;
      }
      if (!(entries_[least] < entry)) break;
      put(place, entries_[least]);
      place = least;
    }
    put(place, entry);
  }

  std::vector<Entry> entries_;
  std::vector<std::uint32_t> places_;  // [event] in entries_
  std::uint64_t next_ = 0;
};

}  // namespace rehearse::sim
