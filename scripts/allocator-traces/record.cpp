// Runs a sequence of allocations through PyTorch's own caching allocator over the stand-in device, and writes every operation with what the
// allocator then says. Reads the sequence from standard input (tests/memory/data/README.md has the format).
#include <c10/core/DeviceType.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAStream.h>

#include <cstdlib>
#include <iostream>
#include <map>
#include <sstream>
#include <string>

#include "standin.hpp"

// Of c10/cuda/CUDAFunctions.cpp, which no header declares. True: the device is in use already.
namespace c10::cuda::_internal {
void setHasPrimaryContext(bool (*has)(c10::DeviceIndex));
}

namespace {

namespace allocator = c10::cuda::CUDACachingAllocator;

cudaStream_t handle(std::uintptr_t stream) { return reinterpret_cast<cudaStream_t>(16 * stream); }  // aligned, as pointers are
c10::cuda::CUDAStream stream_of(std::uintptr_t stream) {
  return stream == 0 ? c10::cuda::getDefaultCUDAStream(0) : c10::cuda::getStreamFromExternal(handle(stream), 0);
}

std::string state() {
  const auto s = allocator::getDeviceStats(0);
  std::ostringstream out;
  out << s.allocated_bytes[0].current << ' ' << s.reserved_bytes[0].current << ' ' << s.requested_bytes[0].current << ' '
      << s.segment[0].current << ' ' << s.inactive_split_bytes[0].current << ' ' << s.num_alloc_retries << ' ' << s.num_ooms;
  return out.str();
}

class Recorder {
 public:
  void run(std::istream& in) {
    for (std::string line; std::getline(in, line);) {
      if (line.empty() || line[0] == '#') continue;
      std::istringstream words(line);
      std::string what;
      words >> what;
      if (what == "device") {
        std::string bytes;
        words >> bytes;
        setenv("STANDIN_BYTES", bytes.c_str(), 1);
      } else if (what == "settings") {
        words >> settings_;
      } else if (what == "fraction") {
        words >> fraction_;
      } else {
        begin();
        act(what, words);
        std::cout << line << " : " << state() << '\n';
        continue;
      }
      std::cout << line << '\n';
    }
  }

 private:
  void begin() {
    if (begun_) return;
    begun_ = true;
    if (!settings_.empty()) setenv("PYTORCH_CUDA_ALLOC_CONF", settings_.c_str(), 1);
    c10::cuda::_internal::setHasPrimaryContext([](c10::DeviceIndex) { return true; });
    allocator::init(1);
    if (fraction_ < 1) allocator::setMemoryFraction(fraction_, 0);
  }

  void act(const std::string& what, std::istream& words) {
    long id = 0;
    std::uintptr_t stream = 0;
    if (what == "a") {
      std::size_t bytes = 0;
      words >> id >> bytes >> stream;
      c10::cuda::setCurrentCUDAStream(stream_of(stream));
      try {
        live_[id] = allocator::get()->allocate(bytes);
      } catch (const c10::OutOfMemoryError&) {
        live_.erase(id);
      }
    } else if (what == "u") {
      words >> id >> stream;
      if (live_.count(id) != 0) allocator::recordStream(live_.at(id), stream_of(stream));
    } else if (what == "f") {
      words >> id;
      live_.erase(id);
    } else if (what == "d") {
      words >> stream;
      standin::finish(handle(stream));
    } else if (what == "e") {
      allocator::emptyCache();
    } else {
      std::cerr << "unknown operation " << what << '\n';
      std::exit(2);
    }
  }

  bool begun_ = false;
  std::string settings_;
  double fraction_ = 1;
  std::map<long, c10::DataPtr> live_;
};

}  // namespace

// The asynchronous allocator is another one, left out of this build.
namespace c10::cuda::CUDACachingAllocator::CudaMallocAsync {
CUDAAllocator* allocator() { std::abort(); }
}  // namespace c10::cuda::CUDACachingAllocator::CudaMallocAsync

int main() {
  Recorder().run(std::cin);
  std::cout.flush();
  std::_Exit(0);  // the allocator is global and outlives the stand-in otherwise
}
