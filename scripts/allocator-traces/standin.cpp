// A device that has memory and streams but computes nothing. Memory: a budget in bytes (STANDIN_BYTES) out of which cudaMalloc and
// cuMemCreate are served, at addresses that only grow; more than the budget is "out of memory". Streams: an event is complete once
// finish(stream) has been called after it was recorded.
#include "standin.hpp"

#include <cstdlib>
#include <cstring>
#include <map>

namespace {

constexpr std::size_t page = 2 << 20;

struct Device {
  std::size_t total = std::strtoull(std::getenv("STANDIN_BYTES"), nullptr, 10);
  std::size_t held = 0;
  std::uintptr_t next_address = std::uintptr_t{1} << 40;
  std::uintptr_t next_handle = 1;
  std::map<std::uintptr_t, std::size_t> blocks, handles;
  std::map<cudaStream_t, long> recorded, finished;

  std::uintptr_t reserve(std::size_t bytes) {
    const std::uintptr_t at = next_address;
    next_address += (bytes + page - 1) / page * page;
    return at;
  }
  bool take(std::size_t bytes) {
    if (held + bytes > total) return false;
    held += bytes;
    return true;
  }
};

Device& device() {
  static Device d;
  return d;
}

struct Event {
  cudaStream_t stream;
  long number;
};
Event* of(cudaEvent_t event) { return reinterpret_cast<Event*>(event); }

}  // namespace

namespace standin {
void finish(cudaStream_t stream) { device().finished[stream] = device().recorded[stream]; }
}  // namespace standin

extern "C" {

cudaError_t cudaMalloc(void** address, std::size_t bytes) {
  const std::size_t whole = (bytes + page - 1) / page * page;
  if (!device().take(whole)) return cudaErrorMemoryAllocation;
  const std::uintptr_t at = device().reserve(whole);
  device().blocks[at] = whole;
  *address = reinterpret_cast<void*>(at);
  return cudaSuccess;
}
cudaError_t cudaFree(void* address) {
  const auto found = device().blocks.find(reinterpret_cast<std::uintptr_t>(address));
  if (found == device().blocks.end()) return address == nullptr ? cudaSuccess : cudaErrorUnknown;
  device().held -= found->second;
  device().blocks.erase(found);
  return cudaSuccess;
}
cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  *total = device().total;
  *free = device().total - device().held;
  return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int) {
  *properties = {};
  std::strcpy(properties->name, "stand-in");
  properties->totalGlobalMem = device().total;
  return cudaSuccess;
}
cudaError_t cudaGetDevice(int* number) { return *number = 0, cudaSuccess; }
cudaError_t cudaSetDevice(int) { return cudaSuccess; }
cudaError_t cudaGetDeviceCount(int* count) { return *count = 1, cudaSuccess; }
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr, int) { return *value = 9, cudaSuccess; }
cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) { return *least = *greatest = 0, cudaSuccess; }
cudaError_t cudaDriverGetVersion(int* version) { return *version = CUDA_VERSION, cudaSuccess; }
cudaError_t cudaGetLastError() { return cudaSuccess; }
const char* cudaGetErrorString(cudaError_t) { return "stand-in error"; }

cudaError_t cudaEventCreate(cudaEvent_t* event) {
  *event = reinterpret_cast<cudaEvent_t>(new Event{});
  return cudaSuccess;
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) { return cudaEventCreate(event); }
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete of(event);
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  *of(event) = {stream, ++device().recorded[stream]};
  return cudaSuccess;
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
  return of(event)->number <= device().finished[of(event)->stream] ? cudaSuccess : cudaErrorNotReady;
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  long& finished = device().finished[of(event)->stream];
  if (finished < of(event)->number) finished = of(event)->number;
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) { return standin::finish(stream), cudaSuccess; }
cudaError_t cudaStreamIsCapturing(cudaStream_t, cudaStreamCaptureStatus* status) {
  return *status = cudaStreamCaptureStatusNone, cudaSuccess;
}
cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned, int) {
  static std::uintptr_t next = 1000;
  *stream = reinterpret_cast<cudaStream_t>(next++);
  return cudaSuccess;
}

CUresult cuMemAddressReserve(CUdeviceptr* address, std::size_t bytes, std::size_t, CUdeviceptr, unsigned long long) {
  return *address = device().reserve(bytes), CUDA_SUCCESS;
}
CUresult cuMemAddressFree(CUdeviceptr, std::size_t) { return CUDA_SUCCESS; }
CUresult cuMemCreate(CUmemGenericAllocationHandle* handle, std::size_t bytes, const CUmemAllocationProp*, unsigned long long) {
  if (!device().take(bytes)) return CUDA_ERROR_OUT_OF_MEMORY;
  *handle = device().next_handle++;
  device().handles[*handle] = bytes;
  return CUDA_SUCCESS;
}
CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
  device().held -= device().handles.at(handle);
  device().handles.erase(handle);
  return CUDA_SUCCESS;
}
CUresult cuMemMap(CUdeviceptr, std::size_t, std::size_t, CUmemGenericAllocationHandle, unsigned long long) { return CUDA_SUCCESS; }
CUresult cuMemUnmap(CUdeviceptr, std::size_t) { return CUDA_SUCCESS; }
CUresult cuMemSetAccess(CUdeviceptr, std::size_t, const CUmemAccessDesc*, std::size_t) { return CUDA_SUCCESS; }
CUresult cuGetErrorString(CUresult, const char** text) { return *text = "stand-in error", CUDA_SUCCESS; }

// Never reached by what is recorded: called, they end the program.
#define NEVER(declaration) \
  declaration { std::abort(); }
NEVER(cudaError_t cudaMallocManaged(void**, std::size_t, unsigned))
NEVER(cudaError_t cudaMemAdvise(const void*, std::size_t, cudaMemoryAdvise, int))
NEVER(cudaError_t cudaMemcpy(void*, const void*, std::size_t, cudaMemcpyKind))
NEVER(cudaError_t cudaMemcpyAsync(void*, const void*, std::size_t, cudaMemcpyKind, cudaStream_t))
NEVER(cudaError_t cudaMemcpyPeerAsync(void*, int, const void*, int, std::size_t, cudaStream_t))
NEVER(cudaError_t cudaDeviceCanAccessPeer(int*, int, int))
NEVER(cudaError_t cudaDeviceEnablePeerAccess(int, unsigned))
NEVER(cudaError_t cudaDeviceGetPCIBusId(char*, int, int))
NEVER(cudaError_t cudaDeviceSynchronize())
NEVER(cudaError_t cudaEventElapsedTime(float*, cudaEvent_t, cudaEvent_t))
NEVER(cudaError_t cudaStreamDestroy(cudaStream_t))
NEVER(cudaError_t cudaStreamGetPriority(cudaStream_t, int*))
NEVER(cudaError_t cudaStreamQuery(cudaStream_t))
NEVER(cudaError_t cudaStreamWaitEvent(cudaStream_t, cudaEvent_t, unsigned))
NEVER(cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode*))
NEVER(cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t*, void*))
NEVER(cudaError_t cudaIpcOpenMemHandle(void**, cudaIpcMemHandle_t, unsigned))
NEVER(cudaError_t cudaIpcCloseMemHandle(void*))
NEVER(CUresult cuDeviceGetAttribute(int*, int, CUdevice))
NEVER(CUresult cuMemGetAllocationGranularity(std::size_t*, const CUmemAllocationProp*, int))
NEVER(CUresult cuMemExportToShareableHandle(void*, CUmemGenericAllocationHandle, CUmemAllocationHandleType, unsigned long long))
NEVER(CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle*, void*, CUmemAllocationHandleType))
NEVER(CUresult cuMemsetD32Async(CUdeviceptr, unsigned, std::size_t, CUstream))
NEVER(CUresult cuStreamWriteValue32(CUstream, CUdeviceptr, std::uint32_t, unsigned))
}
