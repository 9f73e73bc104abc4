#include "sim/report/gzip.hpp"

#include <zlib.h>

#include <new>
#include <streambuf>
#include <vector>

namespace rehearse::sim {
namespace {

constexpr std::size_t buffer_bytes = 1 << 18;
constexpr int fast = 1;             // a trace shrinks to a fifteenth; level 6 makes that a twentieth, in four times the time
constexpr int gzip_bits = 15 + 16;  // zlib.h: the largest window; + 16: a gzip header instead of zlib's

}  // namespace

class GzipStream::Buffer final : public std::streambuf {
 public:
  explicit Buffer(std::ostream& out) : out_(out), in_(buffer_bytes), packed_(buffer_bytes) {
    if (deflateInit2(&zlib_, fast, Z_DEFLATED, gzip_bits, MAX_MEM_LEVEL, Z_DEFAULT_STRATEGY) != Z_OK) throw std::bad_alloc();
    setp(in_.data(), in_.data() + in_.size());
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer() override { deflateEnd(&zlib_); }

  bool pack(int flush) {
    zlib_.next_in = reinterpret_cast<Bytef*>(pbase());
    zlib_.avail_in = static_cast<uInt>(pptr() - pbase());
    do {
      zlib_.next_out = reinterpret_cast<Bytef*>(packed_.data());
      zlib_.avail_out = static_cast<uInt>(packed_.size());
      deflate(&zlib_, flush);  // with room to write into it cannot fail
      out_.write(packed_.data(), static_cast<std::streamsize>(packed_.size() - zlib_.avail_out));
    } while (zlib_.avail_out == 0);
    setp(in_.data(), in_.data() + in_.size());
    return out_.good();
  }

 private:
  int_type overflow(int_type c) override {
    if (!pack(Z_NO_FLUSH)) return traits_type::eof();
    if (!traits_type::eq_int_type(c, traits_type::eof())) sputc(traits_type::to_char_type(c));
    return traits_type::not_eof(c);
  }

  std::ostream& out_;
  std::vector<char> in_, packed_;
  z_stream zlib_{};
};

GzipStream::GzipStream(std::ostream& out) : std::ostream(nullptr), buffer_(std::make_unique<Buffer>(out)) { rdbuf(buffer_.get()); }

GzipStream::~GzipStream() = default;

void GzipStream::finish() {
  if (!buffer_->pack(Z_FINISH)) setstate(std::ios::badbit);
}

}  // namespace rehearse::sim
