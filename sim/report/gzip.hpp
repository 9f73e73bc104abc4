// A stream of bytes in gzip's format (RFC 1952, by zlib), written as it comes. The same bytes in give the same bytes out: no name, no time.
#pragma once

#include <memory>
#include <ostream>

namespace rehearse::sim {

class GzipStream final : public std::ostream {
 public:
  explicit GzipStream(std::ostream& out);
  GzipStream(const GzipStream&) = delete;
  GzipStream& operator=(const GzipStream&) = delete;
  ~GzipStream() override;

  // Writes what is left; nothing may follow. Errors of the stream below become errors of this one.
  void finish();

 private:
  class Buffer;
  std::unique_ptr<Buffer> buffer_;
};

}  // namespace rehearse::sim
