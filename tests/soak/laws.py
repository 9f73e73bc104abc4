"""Laws that every job must obey, whatever it is. A law is a generator of the ways in which a case breaks it."""
import collections
import copy
import json

from clusters import NEUTRAL_GPU, faster, is_oversubscribed, shares_links
from jobs import draw_failure, draw_slow_part, is_uneven

EXACT = 1e-9  # of the step: the same arithmetic in another order
OPINIONS = 1e-6  # of the step: SimGrid counts payloads in 2^-16 bytes and takes times closer than 1e-9 s for one
SHARES = 0.01  # of the step: recomputation and its backward in one slowed operation, a wait for messages and for other stages
SPREAD = 3  # times what a change of 1e-12 makes of a step, two runs may differ
METHODS = ("analytic", "simulated", "critical path")

LAWS = {}


def law(function):
    """Registers a law under its name; the first line of its comment says what it demands."""
    LAWS[function.__name__.replace("_", "-")] = function
    return function


def near(one, other, scale, tolerance=EXACT):
    return abs(one - other) <= tolerance * abs(scale)


def percent(one, other):
    return f"{100 * (one / other - 1):+.3g} %" if other else "from 0"


def different(name, one, other):
    """How two results of one method differ, one line per quantity."""
    yield from different_steps(name, one, other)
    for phase, seconds in one["mean_phases_s"].items():
        if not near(seconds, other["mean_phases_s"][phase], other["step_s"]):
            yield f"{name}: {phase} {seconds:.9g} s, not {other['mean_phases_s'][phase]:.9g} s"
    yield from different_memory(name, one, other)


def different_steps(name, one, other):
    if not near(one["step_s"], other["step_s"], other["step_s"]):
        yield f"{name}: step {one['step_s']:.9g} s, not {other['step_s']:.9g} s ({percent(one['step_s'], other['step_s'])})"


def different_memory(name, one, other):
    """Of the ranks that both have."""
    theirs = {each["rank"]: each for each in other["memory"]["ranks"]}
    for mine in one["memory"]["ranks"]:
        its = theirs.get(mine["rank"])
        if its and not near(mine["needed_bytes"], its["needed_bytes"], its["needed_bytes"]):
            yield f"{name}: rank {mine['rank']} needs {mine['needed_bytes']:.9g} B, not {its['needed_bytes']:.9g} B"


@law
def answered(case):
    """Every run ends, with exit code 0 or 1, and prints finite numbers that add up."""
    answer = case.compare()
    if answer.code not in (0, 1):
        yield f"compare: exit code {answer.code}: {answer.err[-300:]}"
        return
    for method in METHODS:
        yield from nonsense(method, answer.result(method))


def nonsense(method, result):
    step_s = result["step_s"]
    if not 0 < step_s < 1e9:
        yield f"{method}: step of {step_s} s"
    if not 0 <= result["mfu"] <= 1.2:
        yield f"{method}: MFU {result['mfu']}"
    for phases in [result["mean_phases_s"], *(each["phases_s"] for each in result["ranks"])]:
        if not near(sum(phases.values()), step_s, step_s, 1e-8):
            yield f"{method}: phases add up to {sum(phases.values()):.12g} s, the step is {step_s:.12g} s"
        if min(phases.values()) < -EXACT * step_s:
            yield f"{method}: a phase of {min(phases.values())} s"


@law
def folded_equals_all(case):
    """One rank of each class gives the step, the phases and the memory that all ranks give."""
    folded, whole = case.simulate("simulation.ranks=folded"), case.simulate("simulation.ranks=all")
    if folded.code != whole.code:
        yield f"folded: exit code {folded.code}, all: {whole.code}: {(folded.err + whole.err)[-300:]}"
    elif folded.code in (0, 1):
        yield from unless_sensitive(case, "folded against all", folded.result(), whole.result())


@law
def granularities_agree(case):
    """Stage, layer and operator cut one timeline: step, time computing and memory are equal; phases that a cut merges are told apart by share."""
    results = {each: case.simulate(f"simulation.granularity={each}") for each in ("layer", "stage", "operator")}
    for name, answer in results.items():
        if answer.code not in (0, 1):
            yield f"{name}: exit code {answer.code}: {answer.err[-300:]}"
        elif name != "layer" and results["layer"].code in (0, 1):
            yield from unless_sensitive(case, f"{name} against layer", answer.result(), results["layer"].result(), different_cuts)


def different_cuts(name, one, other):
    """How two results differ by more than the shares by which a coarse operation tells its phases apart."""
    yield from different_steps(name, one, other)
    yield from different_memory(name, one, other)
    mine, its = computing_s(one), computing_s(other)
    if not near(mine, its, other["step_s"]):
        yield f"{name}: computes for {mine:.9g} s, not {its:.9g} s"
    for phase, seconds in one["mean_phases_s"].items():
        if not near(seconds, other["mean_phases_s"][phase], other["step_s"], SHARES):
            yield f"{name}: {phase} {seconds:.9g} s, not {other['mean_phases_s'][phase]:.9g} s"


def computing_s(result):
    return sum(result["mean_phases_s"][phase] for phase in ("compute", "recompute", "optimizer"))


@law
def critical_path_bounds(case):
    """Closed collectives without contention are as long as the critical path; where every GPU has links of its own, no timeline is shorter."""
    answer = case.compare("simulation.collectives=closed")
    if answer.code not in (0, 1) or case.copies:
        return
    path, step_s = answer.result("critical path")["step_s"], answer.result()["step_s"]
    if step_s < path * (1 - EXACT):
        yield f"closed: {step_s:.9g} s, the critical path {path:.9g} s"
    if case.is_neutral and not near(step_s, path, path):
        yield f"closed: {step_s:.9g} s, nothing shared and no contention, but the critical path {path:.9g} s"
    if shares_links(case.job["cluster"]):
        return
    flows = case.simulate("simulation.collectives=ring")
    if flows.code in (0, 1) and flows.result()["step_s"] < path * (1 - EXACT):
        yield f"ring: {flows.result()['step_s']:.9g} s, the critical path {path:.9g} s"


@law
def formula_and_timeline_need_the_same_memory(case):
    """The fullest GPU of each stage and what a rank of it keeps in its host's memory, by formula and over the timeline."""
    answer = case.compare()
    if answer.code not in (0, 1):
        return
    for key in ("needed_bytes", "host_bytes"):
        fullest = []
        for method in ("analytic", "simulated"):
            stages = collections.defaultdict(float)
            for rank in answer.result(method)["memory"]["ranks"]:
                stages[rank["stage"]] = max(stages[rank["stage"]], rank[key])
            fullest.append(stages)
        for stage, formula in fullest[0].items():
            if not near(fullest[1][stage], formula, formula, 1e-6):
                yield f"stage {stage}: {key} by formula {formula:.9g}, on the timeline {fullest[1][stage]:.9g} ({percent(fullest[1][stage], formula)})"


@law
def differences_have_reasons(case):
    """Predicted and simulated differ by more than 5 % only for a reason that compare prints."""
    answer = case.compare()
    if answer.code not in (0, 1):
        return
    predicted, simulated = answer.result("analytic")["step_s"], answer.result()["step_s"]
    difference = simulated / predicted - 1
    clean = not case.faults and not is_uneven(case.job) and not is_oversubscribed(case.job["cluster"])
    case.note("difference", difference)
    case.note("clean", clean)
    reasons = answer.document()["comparison"]["reasons"]
    if abs(difference) > 0.05 and not any(reasons):
        yield f"predicted {predicted:.6g} s, simulated {simulated:.6g} s ({100 * difference:+.1f} %), and no reason"


@law
def slower_parts_never_help(case):
    """With nothing shared and no contention a slower part never makes the step faster."""
    part = draw_slow_part(case.rng("slow"), case.job)
    for text, _, _ in monotone(case, case.strict(), part):
        yield f"closed, no contention: {text}"


@law
def slower_parts_rarely_help(case):
    """Where links are shared they do only where the second opinion says so too."""
    part = draw_slow_part(case.rng("slow"), case.job)
    job = with_all_ranks(case.job)
    for text, slow, slower in monotone(case, job, part):
        yield from unless_confirmed(case, text, [(job, *slow), (job, *slower)])


def monotone(case, job, part):
    """Where a larger factor makes the step shorter: what to say, and both runs (options and step)."""
    before = None
    for factor in (1, 1.0001, 1.5, 4):
        fault = ["--fault", f"{part} slow {factor}"] if factor > 1 else []
        answer = case.program.ask("simulate", job, (), fault)
        if answer.code not in (0, 1):
            return
        run = (fault, answer.result()["step_s"])
        if before is not None and run[1] < before[1] * (1 - EXACT):
            yield f"{part} slow {factor}: {run[1]:.9g} s after {before[1]:.9g} s ({percent(run[1], before[1])})", before, run
        before = run


def unless_confirmed(case, text, runs):
    """The exception to a law that is none where links are shared: when the second opinion agrees with all runs (job, options, step)."""
    opinions = [case.program.reference_steps(job, (), options) for job, options, _ in runs]
    if all(opinion and agrees(run[2], opinion) for run, opinion in zip(runs, opinions)):
        case.note("exceptions", [*case.notes.get("exceptions", []), text])
    else:
        yield f"{text}; the second opinion has {opinions}"


def agrees(step_s, opinion):
    """With the second opinion, as far as rounding lets anything agree: where flows meet again and again, a difference can double each time."""
    return near(step_s, opinion[0], opinion[0], OPINIONS) or abs(step_s - opinion[0]) <= SPREAD * abs(opinion[1] - opinion[0])


def unless_sensitive(case, name, one, other, differences=different):
    """How two results differ by more than rounding may make of them."""
    texts = list(differences(name, one, other))
    if texts and 0 < abs(one["step_s"] - other["step_s"]) <= SPREAD * case.spread_s():
        case.note("sensitive", True)
        return different_memory(name, one, other)
    return texts


@law
def a_second_opinion_agrees(case):
    """A model of the same operations on the same links that shares no code with the engine takes as long."""
    for ranks in ("folded", "all"):
        answer = case.simulate(f"simulation.ranks={ranks}")
        if answer.code not in (0, 1):
            continue
        step_s = answer.result()["step_s"]
        opinion = case.program.reference_steps(case.job, [f"simulation.ranks={ranks}"], case.options)
        if opinion is None:
            case.note("without second opinion", True)
        elif not near(step_s, opinion[0], opinion[0], OPINIONS) and agrees(step_s, opinion):
            case.note("sensitive", True)
        elif not agrees(step_s, opinion):
            yield f"{ranks}: {step_s:.9g} s, not {opinion[0]:.9g} s ({percent(step_s, opinion[0])})"


@law
def more_bandwidth_never_hurts(case):
    """With nothing shared and no contention twice a bandwidth never makes the step longer, by formula or simulated."""
    job = case.strict()
    better = copy.deepcopy(job)
    better["cluster"], what = faster(job["cluster"], case.rng("faster"))
    before, after = (case.program.ask("compare", each) for each in (job, better))
    if before.code not in (0, 1) or after.code not in (0, 1):
        return
    for method in METHODS:
        one, other = before.result(method)["step_s"], after.result(method)["step_s"]
        if other > one * (1 + EXACT):
            yield f"{method}: twice {what}: {other:.9g} s instead of {one:.9g} s ({percent(other, one)})"


@law
def more_bandwidth_rarely_hurts(case):
    """Where links are shared it does only where the second opinion says so too."""
    job = with_all_ranks(case.job)
    better = copy.deepcopy(job)
    better["cluster"], what = faster(job["cluster"], case.rng("faster"))
    before, after = (case.program.ask("simulate", each) for each in (job, better))
    if before.code not in (0, 1) or after.code not in (0, 1):
        return
    one, other = before.result()["step_s"], after.result()["step_s"]
    if other > one * (1 + EXACT):
        text = f"twice {what}: {other:.9g} s instead of {one:.9g} s ({percent(other, one)})"
        yield from unless_confirmed(case, text, [(job, [], one), (better, [], other)])


@law
def recomputation_trades_time_for_memory(case):
    """With nothing shared and no contention recomputing layers in full takes no less time and no more memory for tensors."""
    # At any turn of the program a rank holds of each layer what it would hold without, or less: a layer's activations lie there whole only while
    # its backward is at work. What an allocator reserves beyond its tensors knows no such order: with twice the collectives in a backward twice
    # as many blocks wait for another stream.
    job = case.strict()
    answers = [case.program.ask("compare", job, [f"recompute={each}"]) for each in ("none", "full")]
    if any(each.code not in (0, 1) for each in answers):
        return
    for method in METHODS:
        kept, again = (each.result(method) for each in answers)
        if again["step_s"] < kept["step_s"] * (1 - EXACT):
            yield f"{method}: {again['step_s']:.9g} s with, {kept['step_s']:.9g} s without ({percent(again['step_s'], kept['step_s'])})"
        if peak_bytes(again) > peak_bytes(kept) * (1 + EXACT):
            yield f"{method}: {peak_bytes(again):.9g} B with, {peak_bytes(kept):.9g} B without"


def peak_bytes(result):
    return max(each["peak_bytes"] for each in result["memory"]["ranks"])


@law
def more_micro_batches_take_longer(case):
    """Twice as many take longer, but no more than twice as long: the pipeline is filled once. Nothing shared, no contention.

    In DualPipe with ZeRO-3 gradients are reduced in the open: behind the next pass a reduction stands before that pass's gathers while
    forwards and backwards alternate, but not while the pipeline fills."""
    job = case.strict()
    if job["schedule"] == "dualpipe" and job["optimizer"].get("sharding") == "zero3":
        job.setdefault("overlap", {})["dp_gradients"] = False
    double = copy.deepcopy(job)
    double["batch"]["global"] *= 2
    answers = [case.program.ask("compare", each) for each in (job, double)]
    if any(each.code not in (0, 1) for each in answers) or is_uneven(job):
        return
    for method in METHODS:
        once, twice = (each.result(method)["step_s"] for each in answers)
        if not once * (1 - EXACT) <= twice <= 2 * once * (1 + EXACT):
            yield f"{method}: {twice:.9g} s for twice the micro-batches of {once:.9g} s ({twice / once:.6g} times)"


@law
def seeds_change_nothing(case):
    """In a job in which nothing is drawn from it."""
    answers = [case.simulate(f"simulation.seed={seed}") for seed in (1, 2)]
    if all(each.code in (0, 1) for each in answers) and answers[0].result()["step_s"] != answers[1].result()["step_s"]:
        yield f"seed 1: {answers[0].result()['step_s']!r} s, seed 2: {answers[1].result()['step_s']!r} s"


@law
def files_repeat(case):
    """The resolved job gives the same bytes in every file, and the timeline's streams never overlap."""
    first = case.program.ask("simulate", case.job, (), case.options, files=True)
    if first.code not in (0, 1):
        return
    again = case.program.ask("simulate", first.files["resolved-job.yaml"].decode(), (), [], files=True)
    for name, content in first.files.items():
        if again.files.get(name) != content:
            yield f"{name} of the resolved job is not that of the job (exit code {again.code}: {again.err[-200:]})"
    yield from overlapping(json.loads(first.files["timeline.json"]), json.loads(first.files["result.json"]))


def overlapping(timeline, result):
    rounding_us = 2e-3  # times have nanosecond digits
    streams = collections.defaultdict(list)
    for event in timeline["traceEvents"]:
        if event["ph"] == "X":
            streams[event["pid"], event["tid"]].append((event["ts"], event["ts"] + event["dur"], event["name"]))
    for (rank, stream), events in streams.items():
        events.sort()
        for before, after in zip(events, events[1:]):
            if before[1] > after[0] + rounding_us:
                yield f"rank {rank}, stream {stream}: '{before[2]}' ends after '{after[2]}' begins"
                break
    last_us = max((end for events in streams.values() for _, end, _ in events), default=0)
    total_s = sum(result["results"]["simulated"]["step_seconds"])
    if last_us < 1e6 * total_s * (1 - 1e-6) - rounding_us:
        yield f"the timeline ends at {last_us:.9g} us, the steps at {1e6 * total_s:.9g} us"


@law
def failures_fold(case):
    """A GPU or port that dies in the step is noticed at the same time with all ranks and folded."""
    base = case.simulate()
    if base.code not in (0, 1):
        return
    fault = draw_failure(case.rng("failure"), case.job, base.result()["step_s"])
    runs = [case.program.ask("simulate", case.job, [f"simulation.ranks={each}"], [*case.options, "--fault", fault]) for each in ("folded", "all")]
    if runs[0].code != runs[1].code or runs[0].code not in (0, 1, 2):
        yield f"{fault}: folded exits with {runs[0].code}, all with {runs[1].code}: {(runs[0].err + runs[1].err)[-300:]}"
    elif runs[0].code != 2:
        folded, whole = (each.document()["failure"] for each in runs)
        one, other = folded["detected_s"], whole["detected_s"]
        if (one is None) != (other is None) or (one is not None and not near(one, other, other)):
            yield f"{fault}: folded notices it at {one} s, all ranks at {other} s"


def with_all_ranks(job):
    """What is slow changes who folds, and a comparison must not hang on that."""
    other = copy.deepcopy(job)
    other["simulation"]["ranks"] = "all"
    return other


def strict(job):
    """The job with nothing shared and no contention: collectives are timed, nothing is copied to hosts."""
    other = copy.deepcopy(job)
    other["cluster"]["gpu"] = dict(NEUTRAL_GPU)
    other["simulation"]["collectives"] = "closed"
    other.pop("offload", None)
    other["optimizer"].pop("device", None)
    return other
