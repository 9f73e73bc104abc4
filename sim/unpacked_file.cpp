#include "sim/unpacked_file.hpp"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <filesystem>
#include <streambuf>
#include <vector>

#include "config/input_error.hpp"

namespace rehearse::sim {

class UnpackedFile::Buffer final : public std::streambuf {
 public:
  explicit Buffer(const std::string& path) : path_(path), file_(gzopen(path.c_str(), "rb"), gzclose), piece_(1U << 18U) {
    std::error_code ignored;
    if (!file_ || std::filesystem::is_directory(path, ignored)) throw config::InputError(fmt::format("cannot read '{}'", path));
  }

 private:
  int_type underflow() override {
    lines_ += static_cast<int>(std::count(eback(), egptr(), '\n'));
    const int got = gzread(file_.get(), piece_.data(), static_cast<unsigned>(piece_.size()));
    int error = Z_OK;
    static_cast<void>(gzerror(file_.get(), &error));
    if (got < 0 || (got == 0 && error != Z_OK))
      throw config::InputError({path_, lines_ + 1, 0}, "the packed file is cut off or damaged from here on", {}, "gzip -t checks one");
    setg(piece_.data(), piece_.data(), piece_.data() + got);
    return got == 0 ? traits_type::eof() : traits_type::to_int_type(*gptr());
  }

  std::string path_;
  std::unique_ptr<gzFile_s, int (*)(gzFile)> file_;  // zlib reads what is not packed as it is
  std::vector<char> piece_;
  int lines_ = 0;  // before what is in the buffer
};

UnpackedFile::UnpackedFile(const std::string& path) : std::istream(nullptr), buffer_(std::make_unique<Buffer>(path)) {
  rdbuf(buffer_.get());
  exceptions(std::ios::badbit);  // an exception of the buffer goes on
}

UnpackedFile::~UnpackedFile() = default;

}  // namespace rehearse::sim
