// Large arrays on huge pages where the system has them to give (transparent_hugepage: always or madvise): a page fault for each 2 MiB
// instead of each 4 KiB, and as many fewer entries of the translation buffers while they are walked.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace rehearse::config {

// Room for `count` entries of an empty array that is about to be filled.
template <class T>
void reserve_on_huge_pages(std::vector<T>& array, std::size_t count) {
  constexpr std::size_t huge = std::size_t{1} << 21;  // bytes: x86-64's and, with pages of 4 KiB, Arm's
  array.reserve(count);
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const std::size_t before = (page - reinterpret_cast<std::uintptr_t>(array.data()) % page) % page;  // bytes to the first whole page
  const std::size_t bytes = array.capacity() * sizeof(T);
  if (bytes < before + huge) return;
  // Only a hint: where it is refused pages are small.
  (void)madvise(reinterpret_cast<std::byte*>(array.data()) + before, (bytes - before) / page * page, MADV_HUGEPAGE);
}

}  // namespace rehearse::config
