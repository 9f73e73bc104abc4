// Large arrays on huge pages where the system has them to give (transparent_hugepage: always or madvise): a page fault for each 2 MiB
// instead of each 4 KiB, and as many fewer entries of the translation buffers while they are walked. A virtual machine may get its memory
// from its host at the first touch only, half a gigabyte a second and processor: very large arrays are touched by all processors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace rehearse::config {

// Bytes that all will be written to.
void expect_writing(std::byte* room, std::size_t bytes);

// Room for `count` entries of an empty array that is about to be filled.
template <class T>
void reserve_on_huge_pages(std::vector<T>& array, std::size_t count) {
  array.reserve(count);
  expect_writing(reinterpret_cast<std::byte*>(array.data()), array.capacity() * sizeof(T));
}

}  // namespace rehearse::config
