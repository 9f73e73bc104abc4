// Caches handed over between the pools of a job, as flows over the links of its clusters.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "sim/serving/serving_job.hpp"
#include "sim/serving/transfer_lane.hpp"
#include "sim/serving/transfers.hpp"
#include "topology/fabric.hpp"

namespace rehearse::sim {

// Of so many GPUs, with one node, or supernode, more where there is a network.
[[nodiscard]] std::shared_ptr<const topology::Fabric> fabric_for(topology::ClusterSpec cluster, int gpus);

class NetworkTransfers final : public TransferPlan {
 public:
  // The fabric of each part.
  using Fabrics = std::vector<std::shared_ptr<const topology::Fabric>>;
  // Throws InputError where no way leads from one pool to the other. The job must outlive it.
  explicit NetworkTransfers(const ServingJob& job);
  // The same on fabrics that were built before, for the GPUs that the job takes of each part.
  NetworkTransfers(const ServingJob& job, Fabrics fabrics);
  ~NetworkTransfers() override;

  void build(Machine& machine) override;
  [[nodiscard]] std::vector<TransferLink> links() const override;
  [[nodiscard]] std::int64_t early(std::size_t from, std::int64_t computed) const override;  // whole pages
  [[nodiscard]] int layers() const override;
  [[nodiscard]] HandOver hand_over(std::size_t from, std::size_t to, std::size_t request, const CacheFront& sent,
                                   const CacheFront& ready) const override;
  [[nodiscard]] std::vector<HandOver::Flow> weights(std::size_t from, std::size_t to, double bytes_per_gpu) const override;  // in a part
  [[nodiscard]] std::optional<std::pair<LinkIndex, double>> link(const ServiceLink& of) const override;
  void cut(const std::vector<ServiceLink>& links) override;
  [[nodiscard]] bool reserves_first() const override;
  [[nodiscard]] bool prefill_answers_first() const override;

  [[nodiscard]] bool whole() const;  // caches leave behind their prompts
  // From a pool that computes prompts to one that decodes, all of the first one first.
  [[nodiscard]] const std::vector<TransferLane>& lanes() const;
  // Of a hand-over that shares nothing, mean over the first instances of both pools of a lane.
  struct Alone {
    double before_s = 0, links_s = 0, after_s = 0;
  };
  [[nodiscard]] Alone alone(const CacheFront& sent, const CacheFront& ready, std::size_t lane = 0) const;
  [[nodiscard]] double alone_s(double tokens, std::size_t lane = 0, double there = 0) const;
  // Of a piece of a cache, the time of kernels that make it fit.
  [[nodiscard]] double aligning_s(const CacheFront& sent, const CacheFront& ready, std::size_t lane = 0) const;
  // Seconds that a hand-over takes of the lane's busiest link, where all instances hand over as often; and of the link that instances
  // share most, those of other senders.
  struct Busiest {
    double seconds = 0, of_others_s = 0;
  };
  [[nodiscard]] Busiest busiest(double tokens, std::size_t lane = 0, double there = 0) const;
  [[nodiscard]] double wire_bytes(double tokens, std::size_t lane = 0) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace rehearse::sim
