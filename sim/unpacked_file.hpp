// A file that may be packed by gzip, read as what was packed.
#pragma once

#include <istream>
#include <memory>
#include <string>

namespace rehearse::sim {

// Known by what is in it, not by its name. Throws config::InputError where it cannot be read, and from whatever reads it, with the line
// reached, where packed data is cut off or damaged.
class UnpackedFile final : public std::istream {
 public:
  explicit UnpackedFile(const std::string& path);
  UnpackedFile(const UnpackedFile&) = delete;
  UnpackedFile& operator=(const UnpackedFile&) = delete;
  ~UnpackedFile() override;

 private:
  class Buffer;
  std::unique_ptr<Buffer> buffer_;
};

}  // namespace rehearse::sim
