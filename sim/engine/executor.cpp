#include "sim/engine/executor.hpp"

#include <thread>

namespace rehearse::sim {

std::vector<Execution> execute(const ExecutorSetup& setup, Machine& machine, const Progress& progress) {
  const auto steps = static_cast<std::size_t>(setup.system.simulation.steps);
  std::function<void(std::size_t)> report;
  if (progress)
    report = [&, all = static_cast<double>(setup.graph.size() * steps)](std::size_t ended) { progress(static_cast<double>(ended) / all); };
  Areas areas;
  if (steps == 1 && setup.failures.empty() && setup.spells.empty()) areas = areas_of(setup.graph, setup.plans, setup.port_links);
  constexpr std::size_t large = 200'000;  // operations that are worth threads
  const unsigned threads = setup.graph.size() < large ? 1 : std::thread::hardware_concurrency();
  if (!areas.of_rank.empty()) machine.divide(areas.of_rank, threads);
  GraphRunner runner(
      {setup.system.gpu, setup.port_links, setup.hosts, setup.spells, setup.flapping, areas.of_rank.empty() ? nullptr : &areas}, machine,
      report);
  const std::size_t step = runner.add({setup.graph, setup.prices, setup.plans});
  std::vector<Execution> executions;
  executions.reserve(steps);  // the runner fills them where they are
  const std::function<void()> next = [&] {
    if (executions.size() < steps) runner.launch(step, executions.emplace_back(), next);
  };
  runner.at(0, next);
  for (const RankFailure& failure : setup.failures) runner.at(failure.at_s, [&] { runner.fail(failure); });
  runner.run();
  return executions;
}

}  // namespace rehearse::sim
