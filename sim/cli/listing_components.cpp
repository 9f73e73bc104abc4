// Components of the program that a job chooses by name.
#include "sim/cli/listing.hpp"
#include "sim/faults/fault_source.hpp"
#include "sim/job/recovery_policy.hpp"
#include "workloads/collective.hpp"
#include "workloads/schedule.hpp"

namespace rehearse::cli {
namespace {

template <class Registry>
class Components final : public Listing {
 public:
  [[nodiscard]] std::vector<std::vector<Field>> rows() const override {
    std::vector<std::vector<Field>> rows;
    for (const std::string& name : Registry::names()) rows.push_back({text_field("name", name)});
    return rows;
  }
};

const ListingRegistry::Registration<Components<workloads::ScheduleRegistry>> schedules("schedules");
const ListingRegistry::Registration<Components<workloads::CollectiveRegistry>> collectives("collectives");
const ListingRegistry::Registration<Components<sim::FaultSourceRegistry>> fault_sources("fault-sources");
const ListingRegistry::Registration<Components<sim::RecoveryPolicyRegistry>> policies("policies");

}  // namespace
}  // namespace rehearse::cli
