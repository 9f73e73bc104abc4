// How a cache gets from the instance that computed it to the one that decodes.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/engine/machine.hpp"
#include "sim/serving/service_fault.hpp"

namespace rehearse::sim {

// How much of a request's cache is computed, or has left: so many tokens in all layers, and in the first `layers` those up to `ahead`.
struct CacheFront {
  std::int64_t tokens = 0;
  int layers = 0;
  std::int64_t ahead = 0;                                                   // nothing without layers
  friend auto operator<=>(const CacheFront&, const CacheFront&) = default;  // NOLINT(modernize-use-nullptr): the 0 it compares with
};

// One hand-over, of a cache or a piece of one: a delay on the sending side, flows that run together, a delay on the receiving side.
struct HandOver {
  struct Flow {
    std::vector<LinkIndex> links;
    double bytes = 0;
  };
  double before_s = 0;
  std::vector<Flow> flows;
  double after_s = 0;
  double bytes = 0;       // of all flows
  double aligning_s = 0;  // of both delays, that of kernels which make it fit
};

struct TransferLink {
  std::string part;      // of the cluster; "" where it has none, and between parts
  std::string from, to;  // "gpu3", "node0/nic1"; between parts their names
  double bytes_per_s = 0;
};

class TransferPlan {
 public:
  virtual ~TransferPlan() = default;
  // Adds its links to a machine that is not sealed yet.
  virtual void build(Machine& machine) = 0;
  // As they were added, one after another from 0 on.
  [[nodiscard]] virtual std::vector<TransferLink> links() const = 0;
  // Of so many tokens of a prompt that is not whole, computed by this instance, those that can leave; 0 where it leaves as a whole.
  [[nodiscard]] virtual std::int64_t early(std::size_t from, std::int64_t computed) const = 0;
  // Layers that leave one by one, each when a pass has computed it; 1: a cache leaves with all of its layers.
  [[nodiscard]] virtual int layers() const = 0;
  // Of a piece of a request's cache, what is `ready` and not `sent`, from an instance that computes prompts to one that decodes.
  [[nodiscard]] virtual HandOver hand_over(std::size_t from, std::size_t to, std::size_t request, const CacheFront& sent,
                                           const CacheFront& ready) const = 0;
  // So many bytes for each GPU of an instance, from the GPUs of another one; both counted among all.
  [[nodiscard]] virtual std::vector<HandOver::Flow> weights(std::size_t from, std::size_t to, double bytes_per_gpu) const = 0;
  // A link of the machine, with its rate; nothing where no cache can go over it.
  [[nodiscard]] virtual std::optional<std::pair<LinkIndex, double>> link(const ServiceLink& of) const = 0;
  // These are gone from here on, and no others: what is handed over goes another way where there is one.
  virtual void cut(const std::vector<ServiceLink>& links) = 0;
  // Whether the pages on the receiving side are taken before the prompt is computed.
  [[nodiscard]] virtual bool reserves_first() const = 0;
  // Whether the side that computes the prompt shows its client the first token.
  [[nodiscard]] virtual bool prefill_answers_first() const = 0;
};

}  // namespace rehearse::sim
