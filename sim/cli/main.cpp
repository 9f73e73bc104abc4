#include <cstdlib>  // says whether the library is glibc
#ifdef __GLIBC__
#include <malloc.h>
#endif

#include "sim/cli/program.hpp"

namespace {

// What is freed is soon taken again: the heap grows in larger steps, and up to 64 MB are not given back in between. The thresholds are
// those that glibc reaches by itself once large blocks were freed.
void keep_heap() {
#ifdef __GLIBC__
  mallopt(M_MMAP_THRESHOLD, 32 << 20);
  mallopt(M_TRIM_THRESHOLD, 64 << 20);
  mallopt(M_TOP_PAD, 4 << 20);
#endif
}

}  // namespace

int main(int argc, char** argv) {
  keep_heap();
  return rehearse::cli::run(argc, argv);
}
