// JSON read in place, from left to right: for long files of which little is needed. What is skipped is walked through and not looked at.
#pragma once

#include <string>
#include <string_view>

namespace rehearse::sim::page {

// The text outlives the scanner. All of it throws config::InputError, without a position, for what is no JSON or something else than asked
// for.
class JsonScanner {
 public:
  explicit JsonScanner(std::string_view text) : rest_(text) {}

  // `member(key)` takes the value behind the key, or skips it; the key is as it stands, with its escapes.
  template <typename Member>
  void object(Member member) {
    expect('{');
    for (bool first = true; !next_is('}'); first = false) {
      if (!first) expect(',');
      const std::string_view key = raw_text();
      expect(':');
      member(key);
    }
    expect('}');
  }
  [[nodiscard]] double number();
  [[nodiscard]] std::string text();
  void skip();
  void end();  // nothing follows

 private:
  [[nodiscard]] bool next_is(char c);
  void expect(char c);
  [[nodiscard]] std::string_view raw_text();  // between the quotes
  void skip_list();

  std::string_view rest_;
  int depth_ = 0;
};

}  // namespace rehearse::sim::page
