#include "tests/calibrate/measurements.hpp"

#include <cstdlib>
#include <fstream>

#include "config/node.hpp"

namespace rehearse::calibrate::testing {

void write(const std::filesystem::path& file, const std::string& text) { std::ofstream(file) << text; }

double number_in(const std::filesystem::path& file, const std::string& path) {
  const auto node = config::Node::load_file(file.string()).find_path(path);
  return node ? std::strtod(node->as_string().c_str(), nullptr) : -1;
}

}  // namespace rehearse::calibrate::testing
