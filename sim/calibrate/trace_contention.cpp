#include "sim/calibrate/trace_contention.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "sim/calibrate/median.hpp"

namespace rehearse::sim {
namespace {

constexpr double mostly = 0.9, hardly = 0.1;

// What the communication is for, by its process group, or by its library.
std::string purpose_of(const TraceKernel& kernel) {
  constexpr std::array<const char*, 5> known{"tp", "cp", "ep", "pp", "dp"};
  for (const char* name : known) {
    if (kernel.group == name || kernel.group.starts_with(std::string(name) + "_")) return name;
  }
  for (const char* part : {"ep::internode", "ep::intranode", "deep_ep", "hybrid_ep"}) {
    if (kernel.name.find(part) != std::string::npos) return "ep";
  }
  return kernel.name.find("SendRecv") != std::string::npos ? "pp" : "any";
}

struct Span {
  double start_us = 0, end_us = 0;
};

double overlap_us(const std::vector<Span>& spans, const TraceKernel& kernel) {
  auto at = std::ranges::lower_bound(spans, kernel.start_us, {}, &Span::end_us);
  double sum = 0;
  for (; at != spans.end() && at->start_us < kernel.end_us; ++at)
    sum += std::max(0.0, std::min(at->end_us, kernel.end_us) - std::max(at->start_us, kernel.start_us));
  return sum;
}

// Spans of one kind, joined where they meet.
std::vector<Span> joined(std::vector<Span> spans) {
  std::ranges::sort(spans, {}, &Span::start_us);
  std::vector<Span> out;
  for (const Span& span : spans) {
    if (!out.empty() && span.start_us <= out.back().end_us) {
      out.back().end_us = std::max(out.back().end_us, span.end_us);
    } else {
      out.push_back(span);
    }
  }
  return out;
}

// Communication by what it is for, and everything that computes, of one GPU; without the kernel's own stream, by stream.
class Streams {
 public:
  Streams(const KinetoTrace& trace, int device) {
    std::map<std::pair<std::string, int>, std::vector<Span>> calls;
    std::map<int, std::vector<Span>> work;
    for (const TraceKernel& kernel : trace.kernels) {
      if (kernel.device != device) continue;
      const KernelClass cls = kernel.cls;
      const Span span{kernel.start_us, kernel.end_us};
      if (cls == KernelClass::communication) calls[{purpose_of(kernel), kernel.stream}].push_back(span);
      if (cls != KernelClass::communication && cls != KernelClass::copy) work[kernel.stream].push_back(span);
    }
    for (auto& [key, spans] : calls) calls_[key] = joined(std::move(spans));
    for (auto& [stream, spans] : work) work_[stream] = joined(std::move(spans));
  }

  // Share of the kernel beside communication of each purpose.
  [[nodiscard]] std::map<std::string, double> beside_calls(const TraceKernel& kernel) const {
    std::map<std::string, double> share;
    for (const auto& [key, spans] : calls_) {
      if (key.second != kernel.stream) share[key.first] += overlap_us(spans, kernel) / (kernel.end_us - kernel.start_us);
    }
    return share;
  }
  [[nodiscard]] double beside_work(const TraceKernel& kernel) const {
    double share = 0;
    for (const auto& [stream, spans] : work_) {
      if (stream != kernel.stream) share = std::max(share, overlap_us(spans, kernel) / (kernel.end_us - kernel.start_us));
    }
    return share;
  }

 private:
  std::map<std::pair<std::string, int>, std::vector<Span>> calls_;
  std::map<int, std::vector<Span>> work_;
};

double weighted_median(std::vector<std::pair<double, double>> values) {
  std::ranges::sort(values);
  double all = 0, below = 0;
  for (const auto& [value, weight] : values) all += weight;
  for (const auto& [value, weight] : values) {
    below += weight;
    if (2 * below >= all) return value;
  }
  return values.back().first;
}

// Persistent kernels have the same grid whatever their shapes: the same kernel on the same shapes has the same neighbours in its stream.
// Those of collectives, which may have a stream of one name to themselves, say how much they exchange.
constexpr std::size_t neighbours = 2;

std::vector<std::string> places_of(const KinetoTrace& trace) {
  std::map<std::pair<int, int>, std::vector<std::size_t>> streams;
  for (std::size_t i = 0; i < trace.kernels.size(); ++i) streams[{trace.kernels[i].device, trace.kernels[i].stream}].push_back(i);
  std::vector<std::string> places(trace.kernels.size());
  for (const auto& [stream, order] : streams) {
    for (std::size_t at = 0; at < order.size(); ++at) {
      std::string& place = places[order[at]];
      for (std::size_t i = at - std::min(at, neighbours); i <= std::min(at + neighbours, order.size() - 1); ++i)
        place += trace.kernels[order[i]].name + '\n';
      const TracedCollective& exchanged = trace.kernels[order[at]].collective;
      place += fmt::format("{}\n{} {}", trace.kernels[order[at]].launch, exchanged.in_elements, exchanged.out_elements);
    }
  }
  return places;
}

// Durations of the same kernel on the same shapes.
struct Durations {
  std::vector<double> alone;
  std::map<std::string, std::vector<double>> beside;  // by what
};
using Same = std::pair<KernelClass, std::string>;  // and its place

void sort_into(const KinetoTrace& trace, std::map<Same, Durations>& all) {
  std::map<int, Streams> gpus;
  for (const TraceKernel& kernel : trace.kernels) gpus.try_emplace(kernel.device, trace, kernel.device);
  const std::vector<std::string> places = places_of(trace);
  for (std::size_t i = 0; i < trace.kernels.size(); ++i) {
    const TraceKernel& kernel = trace.kernels[i];
    const double duration = kernel.end_us - kernel.start_us;
    const KernelClass cls = kernel.cls;
    if (duration <= 0 || cls == KernelClass::copy) continue;
    const Streams& gpu = gpus.at(kernel.device);
    Durations& durations = all[{cls, places[i]}];
    const double beside_work = gpu.beside_work(kernel);
    if (cls == KernelClass::communication) {
      if (beside_work < hardly) durations.alone.push_back(duration);
      if (beside_work > mostly) durations.beside[purpose_of(kernel)].push_back(duration);
      continue;
    }
    if (beside_work > hardly) continue;  // shares the GPU with other work
    const std::map<std::string, double> shares = gpu.beside_calls(kernel);
    double most = 0;
    for (const auto& [purpose, share] : shares) {
      most = std::max(most, share);
      if (share > mostly) durations.beside[purpose].push_back(duration);
    }
    if (most < hardly) durations.alone.push_back(duration);
  }
}

}  // namespace

std::vector<MeasuredContention> contentions(const std::vector<KinetoTrace>& traces) {
  std::map<Same, Durations> all;
  for (const KinetoTrace& trace : traces) sort_into(trace, all);
  struct Ratios {
    std::vector<std::pair<double, double>> by_weight;  // ratio, time that it stands for
    int alone = 0, beside = 0;
  };
  std::map<std::pair<std::string, KernelClass>, Ratios> ratios;
  for (const auto& [same, durations] : all) {
    if (durations.alone.empty()) continue;
    const double alone = median(durations.alone);
    for (const auto& [with, beside] : durations.beside) {
      Ratios& to = ratios[{with, same.first}];
      to.by_weight.emplace_back(median(beside) / alone, alone * static_cast<double>(beside.size()));
      to.alone += static_cast<int>(durations.alone.size());
      to.beside += static_cast<int>(beside.size());
    }
  }
  std::vector<MeasuredContention> out;
  for (auto& [key, each] : ratios) {
    double time_us = 0;
    for (const auto& [ratio, weight] : each.by_weight) time_us += weight;
    out.push_back({key.first, key.second, weighted_median(std::move(each.by_weight)), each.alone, each.beside, time_us});
  }
  return out;
}

}  // namespace rehearse::sim
