// The wire format of protocol buffers, as far as messages of numbers and texts need it (protobuf.dev/programming-guides/encoding).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace rehearse::sim {

class ProtobufMessage {
 public:
  void number(int field, std::uint64_t value) {
    varint(static_cast<std::uint64_t>(field) << 3);
    varint(value);
  }
  void text(int field, std::string_view value) {
    varint((static_cast<std::uint64_t>(field) << 3) | 2);
    varint(value.size());
    bytes_ += value;
  }
  void message(int field, const ProtobufMessage& inner) { text(field, inner.bytes_); }
  // As in a file of several: its length before it.
  [[nodiscard]] std::string delimited() const {
    ProtobufMessage length;
    length.varint(bytes_.size());
    return length.bytes_ + bytes_;
  }

 private:
  void varint(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>(value | 0x80);
    bytes_ += static_cast<char>(value);
  }
  std::string bytes_;
};

}  // namespace rehearse::sim
