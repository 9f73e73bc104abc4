// Traces written as PyTorch's profiler writes them.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdint>
#include <string>
#include <vector>

namespace rehearse::calibrate::testing {

// One rank, one thread of the host. Times in microseconds.
class WrittenTrace {
 public:
  using Sizes = std::vector<std::vector<std::int64_t>>;

  // An operator of PyTorch that launches one kernel, alone in its stream; `values`: of the arguments, "" of tensors.
  void call(const std::string& name, const Sizes& dims, const std::vector<std::string>& types, const std::vector<std::string>& values,
            const std::string& kernel, double duration_us) {
    call(name, dims, in_order(dims), types, values, kernel, duration_us);
  }
  void call(const std::string& name, const Sizes& dims, const Sizes& strides, const std::vector<std::string>& types,
            const std::vector<std::string>& values, const std::string& kernel, double duration_us) {
    events_.push_back(fmt::format(
        R"({{"ph":"X","cat":"cpu_op","name":"{}","pid":9,"tid":9,"ts":{},"dur":8,"args":{{"External id":{},"Input Dims":{},"Input Strides":{},"Input type":[{}],"Concrete Inputs":[{}]}}}})",
        name, host_us_, correlation_ + 1, shown(dims), shown(strides), quoted(types), quoted(values)));
    launch(host_us_ + 2);
    host_us_ += 10;
    add_kernel(kernel, 7, gpu_us_, duration_us, "");
    gpu_us_ += duration_us + 2;
  }
  // What the host launches for no operator.
  void kernel(const std::string& name, double duration_us) {
    launch(host_us_);
    host_us_ += 10;
    add_kernel(name, 7, gpu_us_, duration_us, "");
    gpu_us_ += duration_us + 2;
  }
  // On a stream of its own, from `start_us`.
  void communication(const std::string& name, double start_us, double duration_us, const std::string& arguments = "") {
    launch(host_us_);
    add_kernel(name, 20, start_us, duration_us, arguments);
  }
  void wait(double us) { gpu_us_ += us; }
  [[nodiscard]] double now_us() const { return gpu_us_; }

  [[nodiscard]] std::string text(int rank = 0, int world = 1) const {
    return fmt::format(
        R"({{"deviceProperties":[{{"name":"NVIDIA H100 80GB HBM3"}}],"distributedInfo":{{"rank":{},"world_size":{}}},"traceEvents":[{}]}})",
        rank, world, fmt::join(events_, ",\n"));
  }

 private:
  static Sizes in_order(const Sizes& dims) {
    Sizes strides;
    for (const auto& each : dims) {
      std::vector<std::int64_t> stride(each.size(), 1);
      for (std::size_t i = each.size(); i-- > 1;) stride[i - 1] = stride[i] * each[i];
      strides.push_back(std::move(stride));
    }
    return strides;
  }
  static std::string shown(const Sizes& sizes) {
    std::vector<std::string> each;
    for (const auto& size : sizes) each.push_back(fmt::format("[{}]", fmt::join(size, ",")));
    return fmt::format("[{}]", fmt::join(each, ","));
  }
  static std::string quoted(const std::vector<std::string>& words) {
    std::vector<std::string> each;
    for (const auto& word : words) each.push_back('"' + word + '"');
    return fmt::format("{}", fmt::join(each, ","));
  }
  void launch(double at_us) {
    events_.push_back(fmt::format(
        R"({{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":9,"tid":9,"ts":{},"dur":4.5,"args":{{"correlation":{}}}}})",
        at_us, ++correlation_));
  }
  void add_kernel(const std::string& name, int stream, double start_us, double duration_us, const std::string& arguments) {
    events_.push_back(fmt::format(
        R"({{"ph":"X","cat":"kernel","name":"{}","pid":0,"tid":{},"ts":{},"dur":{},"args":{{"device":0,"stream":{},"correlation":{}{}}}}})",
        name, stream, start_us, duration_us, stream, correlation_, arguments));
  }

  std::vector<std::string> events_;
  double host_us_ = 0, gpu_us_ = 1000;
  int correlation_ = 0;
};

}  // namespace rehearse::calibrate::testing
