"""A case of the soak: a job and what is slow in it, drawn from a seed, a number and nothing else; its answers are asked for once."""
import random

import clusters
import jobs
import laws
import wider


class Case:
    """clean: without faults and uneven routing; the rest is drawn alike. wide: with what few jobs have on top (wider.py)."""

    def __init__(self, program, seed, number, cluster_count, clean=False, wide=False):
        self.program, self.seed, self.number = program, seed, number
        rng = self.rng("job")
        cluster = clusters.draw_cluster(random.Random(f"{seed}/cluster/{number % cluster_count}"))
        self.job = jobs.draw_job(rng, cluster, with_experts=rng.random() < 0.4)
        jobs.add_mixer(self.rng("pattern"), self.job)  # apart: all else is as without
        if wide:
            self.job = wider.widen(self.rng("wider"), self.job, program.root, lambda job: not program.ask("predict", job).refused)
        self.faults = jobs.draw_faults(rng, self.job) if rng.random() < 0.35 and not clean else []
        if clean and "moe" in self.job:
            self.job["moe"]["routing"] = "balanced"
        self.notes, self.answers = {}, {}

    def rng(self, purpose):
        return random.Random(f"{self.seed}/{self.number}/{purpose}")

    @property
    def name(self):
        return f"{self.seed}-{self.number}"

    @property
    def options(self):
        return [word for fault in self.faults for word in ("--fault", fault)]

    @property
    def is_neutral(self):
        return clusters.is_neutral(self.job["cluster"])

    @property
    def copies(self):
        """Something is copied between GPUs and hosts."""
        return "offload" in self.job or self.job["optimizer"].get("device") == "cpu"

    def strict(self):
        return laws.strict(self.job)

    def simulate(self, *sets):
        return self.ask("simulate", *sets)

    def compare(self, *sets):
        return self.ask("compare", *sets)

    def ask(self, command, *sets):
        if (command, sets) not in self.answers:
            self.answers[command, sets] = self.program.ask(command, self.job, sets, self.options)
        return self.answers[command, sets]

    def spread_s(self):
        """By how much changes of 1e-12 in what links carry change the step, where they change it a thousand times as much; else 0."""
        opinion = self.program.reference_steps(self.job, ["simulation.ranks=all"], self.options)
        spread = abs(opinion[1] - opinion[0]) if opinion else 0
        return spread if opinion and spread > 1e-9 * opinion[0] else 0

    def note(self, key, value):
        self.notes[key] = value
