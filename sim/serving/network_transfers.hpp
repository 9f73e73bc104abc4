// Caches handed over between the pools of a job, as flows over the links of its clusters.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "sim/serving/kv_alignment.hpp"
#include "sim/serving/serving_job.hpp"
#include "sim/serving/transfers.hpp"

namespace rehearse::sim {

class NetworkTransfers final : public TransferPlan {
 public:
  // Throws InputError where no way leads from one pool to the other. The job must outlive it.
  explicit NetworkTransfers(const ServingJob& job);
  ~NetworkTransfers() override;

  void build(Machine& machine) override;
  [[nodiscard]] HandOver hand_over(std::size_t from, std::size_t to, std::size_t request, double tokens) const override;
  [[nodiscard]] bool reserves_first() const override;
  [[nodiscard]] bool prefill_answers_first() const override;

  // Of a hand-over from the first instance to the first one, which shares nothing.
  [[nodiscard]] double alone_s(double tokens) const;
  [[nodiscard]] double wire_bytes(double tokens) const;
  [[nodiscard]] const std::vector<KvAlignmentWork>& alignment() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace rehearse::sim
