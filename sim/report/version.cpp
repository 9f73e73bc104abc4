#include "sim/report/version.hpp"

namespace rehearse::sim {

std::string_view version() { return REHEARSE_VERSION; }

}  // namespace rehearse::sim
