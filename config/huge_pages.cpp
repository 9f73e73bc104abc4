#include "config/huge_pages.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "config/threads.hpp"

namespace rehearse::config {
namespace {

// By all processors. Only a hint: what a system does not know (Linux before 5.14) comes with the writing.
void touch(std::byte* pages, std::size_t bytes) {
#ifdef MADV_POPULATE_WRITE
  constexpr std::size_t piece = std::size_t{1} << 26, large = 4 * piece;
  if (bytes < large) return;
  std::atomic<std::size_t> next = 0;
  on_threads(std::thread::hardware_concurrency(), [&] {
    for (std::size_t at = next.fetch_add(piece); at < bytes; at = next.fetch_add(piece)) {
      (void)madvise(pages + at, std::min(piece, bytes - at), MADV_POPULATE_WRITE);
    }
  });
#endif
}

}  // namespace

void expect_writing(std::byte* room, std::size_t bytes) {
  constexpr std::size_t huge = std::size_t{1} << 21;  // x86-64's and, with pages of 4 KiB, Arm's
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const std::size_t before = (page - reinterpret_cast<std::uintptr_t>(room) % page) % page;  // to the first whole page
  if (bytes < before + huge) return;
  const std::size_t whole = (bytes - before) / page * page;
  (void)madvise(room + before, whole, MADV_HUGEPAGE);  // only a hint: where it is refused pages are small
  touch(room + before, whole);
}

}  // namespace rehearse::config
