// A price book prices each call once for all stages whose groups lie alike: on random grids and clusters every stage pays what the model
// asks of its own group, and a message to the next stage costs what the slowest of all replicas' hops does.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "sim/cost/price_book.hpp"

namespace rehearse::sim {
namespace {

using workloads::CollectiveKind;
using workloads::GroupKind;

constexpr std::array kinds{GroupKind::tp,       GroupKind::cp,      GroupKind::dp,         GroupKind::dp_cp,     GroupKind::pp,
                           GroupKind::ep,       GroupKind::etp,     GroupKind::edp,        GroupKind::embedding, GroupKind::shard,
                           GroupKind::replicas, GroupKind::to_host, GroupKind::host_memory};

class RandomGrids {
 public:
  topology::ClusterSpec cluster() {
    topology::ClusterSpec c;
    c.gpus_per_node = pick({2, 4, 8});
    c.supernode_gpus = pick({0, 0, 16});
    c.supernode = {100e9, 0.7, 4e-6};
    c.intra = {300e9, 0.8, 3e-6};
    c.nics_per_node = c.gpus_per_node;
    c.nic = {25e9, 0.9, 6e-6};
    c.host.bandwidth_bytes_per_s = 20e9;
    c.host_memory.bytes_per_s = 200e9;
    c.gpus_per_host_link = pick({1, 2});
    c.network.kind = topology::Network::leaf_spine;
    c.network.nodes_per_leaf = 2;
    c.network.oversubscription = pick({1, 3});
    return c;
  }

  workloads::Workload plan() {
    workloads::Workload w;
    workloads::Parallel& p = w.parallel;
    p.tp = pick({1, 2, 3, 8});
    p.cp = pick({1, 2});
    p.pp = pick({2, 4, 6});
    p.dp = pick({1, 2, 3, 4});
    p.ep = std::max(1, pick({1, p.dp}));
    p.etp = p.ep == 1 ? p.tp : pick({1, p.tp});
    if (p.tp * p.cp * p.dp % (p.etp * p.ep) != 0) p.ep = p.etp = 1;
    std::shuffle(p.order.begin(), p.order.end(), random_);
    w.schedule = pick({0, 0, 1}) == 1 ? "dualpipe" : "1f1b";
    w.optimizer.shard_group = p.dp * p.cp % 2 == 0 ? pick({0, 2}) : 0;
    return w;
  }

 private:
  int pick(std::initializer_list<int> from) { return *(from.begin() + random_() % from.size()); }
  std::mt19937 random_{5};
};

TEST(PriceBook, EveryStagePaysForItsOwnGroups) {
  RandomGrids random;
  int shared = 0;
  for (int i = 0; i < 400; ++i) {
    const topology::ClusterSpec cluster = random.cluster();
    const workloads::Workload plan = random.plan();
    const CommunicationModel model(cluster, plan, "auto");
    const workloads::RankGrid grid = workloads::rank_grid(plan);
    PriceBook book(model, grid, plan.parallel.pp);
    for (int stage = 0; stage < plan.parallel.pp; ++stage) {
      const int rank = grid.rank({0, 0, 0, stage});
      shared += book.place(stage) < stage ? 1 : 0;
      for (const GroupKind kind : kinds) {
        const bool host = kind == GroupKind::to_host || kind == GroupKind::host_memory;
        const CollectiveKind call = host ? CollectiveKind::send_recv : CollectiveKind::all_gather;
        const auto price_s = [&](int of) {
          return model.price({"", call, kind, 3e7, workloads::Pass::forward}, grid.group(kind, of)).seconds();
        };
        double alone = price_s(rank);
        const bool first_alone = host || kind == GroupKind::pp;
        for (int of = 0; of < grid.size() && !first_alone; ++of)  // the slowest of the stage's groups
          alone = grid.coordinates(of).pp == stage ? std::max(alone, price_s(of)) : alone;
        ASSERT_EQ(book.seconds(call, kind, 3e7, stage), alone) << "grid " << i << ", stage " << stage << ", " << name_of(kind);
      }
      double slowest = 0;
      for (int d = 0; d < plan.parallel.dp; ++d) {
        const int from = grid.rank({0, 0, d, stage});
        const workloads::Communication message{"", CollectiveKind::send_recv, GroupKind::pp, 1e6, workloads::Pass::forward};
        slowest = std::max(slowest, model.price(message, std::array{from, grid.next_stage(from)}).seconds());
      }
      ASSERT_EQ(book.hop(1e6, stage).seconds, slowest) << "grid " << i << ", stage " << stage;
    }
  }
  EXPECT_GT(shared, 100);  // otherwise nothing was tried
}

}  // namespace
}  // namespace rehearse::sim
