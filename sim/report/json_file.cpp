#include "sim/report/json_file.hpp"

#include <algorithm>

#include "config/input_error.hpp"

namespace rehearse::sim {
namespace {

// What stands behind "[json.exception...] " and, of texts that are not JSON, behind the place.
std::string behind(const std::string& text, const std::string& mark) {
  const std::size_t found = text.find(mark);
  return found == std::string::npos ? text : text.substr(found + mark.size());
}

bool begins_character(char byte) { return (static_cast<unsigned char>(byte) & 0xC0U) != 0x80U; }

}  // namespace

std::string reason_of(const nlohmann::json::exception& error) { return behind(error.what(), "] "); }

nlohmann::ordered_json parse_json(const std::string& text, const std::string& path, const std::string& hint) {
  try {
    return nlohmann::ordered_json::parse(text);
  } catch (const nlohmann::json::parse_error& error) {
    const std::size_t at = std::min(text.size(), error.byte > 0 ? error.byte - 1 : 0);  // it counts from 1
    const std::size_t before = at == 0 ? std::string::npos : text.rfind('\n', at - 1);
    const std::size_t begin = before == std::string::npos ? 0 : before + 1, end = std::min(text.find('\n', begin), text.size());
    const auto first = text.begin();
    const auto offset = [&](std::size_t byte) { return first + static_cast<std::ptrdiff_t>(byte); };
    const auto line = 1 + std::count(first, offset(begin), '\n'), column = 1 + std::count_if(offset(begin), offset(at), begins_character);
    const std::string why = text.empty() ? "it is empty" : at >= text.size() ? "it ends too early" : behind(reason_of(error), ": ");
    throw config::InputError({path, static_cast<int>(line), static_cast<int>(column)}, "not JSON: " + why, text.substr(begin, end - begin),
                             hint);
  }
}

}  // namespace rehearse::sim
