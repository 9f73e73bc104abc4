#include "sim/cost/software_keys.hpp"

namespace rehearse::sim {

const config::Names<workloads::DispatchKernels>& dispatch_kernels() {
  using workloads::DispatchKernels;
  static const config::Names<DispatchKernels> names{{"deepep", DispatchKernels::deepep}, {"hybridep", DispatchKernels::hybridep}};
  return names;
}

const config::Names<int>& flash_kernels() {
  static const config::Names<int> names{{"1", 1}, {"2", 2}, {"3", 3}, {"4", 4}, {"triton", triton}, {"sdpa", sdpa}, {"masked", masked}};
  return names;
}

const config::Names<workloads::GroupedKernel>& grouped_kernels() {
  using workloads::GroupedKernel;
  static const config::Names<GroupedKernel> names{{"library", GroupedKernel::library},
                                                  {"torch", GroupedKernel::torch},
                                                  {"megablox", GroupedKernel::megablox},
                                                  {"streams", GroupedKernel::streams},
                                                  {"turbo", GroupedKernel::turbo}};
  return names;
}

}  // namespace rehearse::sim
