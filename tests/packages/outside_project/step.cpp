// A program of somebody else's on the installed library: a step by formula and simulated, and what is said of wrong input.
#include <cstdio>
#include <rehearse/rehearse.hpp>

int main() {
  const rehearse::Job job = rehearse::Job::load("llama3-8b-8-h100");
  const rehearse::Step predicted = rehearse::predict(job), simulated = rehearse::simulate(job);
  double sum = 0;
  for (const rehearse::PhaseTime& phase : predicted.phases) sum += phase.seconds;
  std::printf("%d %.17g %.17g %.17g %d\n", job.gpus(), predicted.seconds, sum, simulated.seconds, predicted.fits ? 1 : 0);
  std::printf("%.17g\n", rehearse::predict(job.with({{"batch.global", "256"}})).seconds);
  try {
    static_cast<void>(rehearse::Job::load("llama3-8b-8-h100", {{"paralel.tp", "2"}}));
  } catch (const rehearse::Error& error) {
    std::puts(error.what());
    return 0;
  }
  return 1;
}
