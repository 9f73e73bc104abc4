#include "sim/report/json_text.hpp"

#include <nlohmann/json.hpp>
#include <ostream>

namespace rehearse::sim {
namespace {

constexpr auto replacing = nlohmann::ordered_json::error_handler_t::replace;

}  // namespace

std::string json_text(std::string_view text) { return nlohmann::ordered_json(std::string(text)).dump(-1, ' ', false, replacing); }

void print_json(const nlohmann::ordered_json& json, std::ostream& out) { out << json.dump(2, ' ', false, replacing) << '\n'; }

}  // namespace rehearse::sim
