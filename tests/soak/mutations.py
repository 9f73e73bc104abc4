"""Inputs with one thing changed at random: the program refuses them in words or answers with numbers that make sense."""
import json
import pathlib
import random
import re

import foreign
from cases import Case
from laws import nonsense
from program import text_of

TOKENS = [b"0", b"-1", b"1", b"2", b"3", b"7", b"8", b"16", b"64", b"256", b"100000", b"1000000", b"1e6", b"1e9", b"1e308", b"1e-308", b"0.5", b"9" * 20,
          b"nan", b".inf", b"null", b"true", b"~", b"[]", b"{}", b'""', b" us", b" GB/s", b" days", b"\n", b":", b",", b"{", b"}"]

SMALL_JOB = """model: MODEL
cluster: CLUSTER
gpus: 16
parallel: {ep: EP, tp: TP, sp: true}
batch: {global: 16, micro: 1, sequence: 2048}
optimizer: {sharding: zero1}
"""
WHOLE_JOB = """model: llama3-8b
cluster: dgx-h100-ndr400
gpus: 64
parallel: {tp: 8, pp: 2, sp: true}
batch: {global: 32, micro: 1, sequence: 4096}
optimizer: {sharding: zero1}
training: {time: 1 days}
checkpoint: {interval: auto, mode: async, to: disk}
faults:
  hardware: {source: poisson, rate: 0.05 /day}
  stragglers: {source: poisson, component: gpu, rate: 0.01 /day, kind: slow, slowdown: 1.3, duration: {exponential: 1 h}}
recovery: {policy: hot-spare, spares: 2, repair: 12 h}
"""
HUGGING_FACE = {"architectures": ["MixtralForCausalLM"], "hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8,
                "intermediate_size": 14336, "vocab_size": 32000, "hidden_act": "silu", "num_local_experts": 8, "num_experts_per_tok": 2}
TRACE = "time_s,component,kind,duration_s,node,nodes,level,slowdown\n3600,gpu,fail,,3,,,\n7200.5,software,fail,95,3,,process,\n9000,nic,slow,1800,5,,,2\n"
EXPERTS = "{layers: 2, hidden: 1024, heads: 8, ffn: 4096, activation: swiglu, vocab: 1000, moe: {experts: 4, top_k: 2, ffn: 1024}}"
ROUTING = "step,layer,microbatch,expert,tokens\n" + "".join(f"0,{layer},{batch},{expert},2048\n"
                                                             for layer in range(2) for batch in range(1) for expert in range(4))


def mutated(rng, text):
    """One change: of a number, of a word, of a line, of some bytes."""
    data = bytearray(text.encode())
    at = rng.randrange(len(data))
    kind = rng.random()
    if kind < 0.35:
        found = rng.choice(list(re.finditer(rb"\d+(\.\d+)?", bytes(data))) or [None])
        if found:
            data[found.start():found.end()] = changed_number(rng, found.group())
    elif kind < 0.45:
        words = list(re.finditer(rb"[A-Za-z][\w-]*", bytes(data)))
        one, other = rng.choice(words), rng.choice(words)
        data[one.start():one.end()] = other.group()
    elif kind < 0.6:
        data = change_lines(rng, data)
    elif kind < 0.7:
        del data[at:at + rng.randrange(1, 10)]
    elif kind < 0.8:
        data[at] = rng.randrange(256)
    elif kind < 0.9:
        data[at:at] = rng.choice(TOKENS)
    elif kind < 0.95:
        del data[at:]
    else:
        end = rng.randrange(len(data))
        data[at:at] = data[min(at, end):max(at, end)][:200]
    return bytes(data)


def changed_number(rng, digits):
    if rng.random() < 0.5:
        return rng.choice(TOKENS)
    return f"{float(digits) * rng.choice([0.5, 2, 3, 10, 100]):g}".encode()


def change_lines(rng, data):
    lines = bytes(data).split(b"\n")
    at = rng.randrange(len(lines))
    if rng.random() < 0.5:
        del lines[at]
    else:
        lines.insert(rng.randrange(len(lines)), lines[at])
    return bytearray(b"\n".join(lines))


def draw_job_file(rng, root, program):
    case = Case(program, rng.randrange(1 << 30), 0, 1)
    return ["job.yaml"], {"job.yaml": text_of(case.job)}, [rng.choice(["predict", "simulate", "compare", "explain"]), "job.yaml", "--json"]


def small_job(model="llama3-8b", cluster="dgx-h100-ndr400", ep=1, tp=2):
    words = {"MODEL": model, "CLUSTER": cluster, "EP": str(ep), "TP": str(tp)}
    text = re.sub("MODEL|CLUSTER|EP|TP", lambda found: words[found.group()], SMALL_JOB)
    return text if tp > 1 else text.replace(", sp: true", "")


def shipped(rng, root, folder):
    return rng.choice(sorted((root / folder).glob("*.yaml"))).read_text()


def draw_cluster_file(rng, root, program):
    files = {"job.yaml": small_job(cluster="./cluster.yaml"), "cluster.yaml": shipped(rng, root, "platforms/clusters")}
    return ["cluster.yaml"], files, rng.choice([["simulate", "job.yaml", "--json"], ["topology", "./cluster.yaml", "--check"], ["topology", "./cluster.yaml"]])


def draw_gpu_file(rng, root, program):
    cluster = (root / "platforms/clusters/dgx-h100-ndr400.yaml").read_text().replace("h100-sxm5-80g", "./gpu.yaml", 1)
    files = {"job.yaml": small_job(cluster="./cluster.yaml"), "cluster.yaml": cluster, "gpu.yaml": shipped(rng, root, "platforms/gpus")}
    return ["gpu.yaml"], files, ["compare", "job.yaml", "--json"]


def draw_model_file(rng, root, program):
    return ["model.yaml"], {"job.yaml": small_job(model="./model.yaml", tp=1), "model.yaml": shipped(rng, root, "workloads/models")}, ["compare", "job.yaml", "--json"]


def draw_hugging_face(rng, root, program):
    files = {"job.yaml": small_job(model="{hf: config.json}", ep=8, tp=1), "config.json": json.dumps(HUGGING_FACE)}
    return ["config.json"], files, [rng.choice(["predict", "simulate"]), "job.yaml", "--json"]


def draw_routing(rng, root, program):
    job = small_job(model=EXPERTS, ep=4, tp=1) + "moe: {routing: {trace: routing.csv}}\n"
    return ["routing.csv"], {"job.yaml": job, "routing.csv": ROUTING}, ["compare", "job.yaml", "--json"]


def draw_whole_job(rng, root, program):
    return ["job.yaml"], {"job.yaml": WHOLE_JOB}, ["run", "job.yaml", "--json"]


def draw_trace(rng, root, program):
    return ["faults.csv"], {"job.yaml": WHOLE_JOB, "faults.csv": TRACE}, ["replay", "job.yaml", "faults.csv", "--json"]


def draw_scenario(rng, root, program):
    job = re.sub(r"faults:\n(  .*\n)+", "faults: ./faults.yaml\n", WHOLE_JOB)
    return ["faults.yaml"], {"job.yaml": job, "faults.yaml": shipped(rng, root, "workloads/faults")}, ["run", "job.yaml", "--json"]


def draw_measured_case(rng, root, program):
    job = "".join(f"    {line}\n" for line in small_job().splitlines())
    case = f"- id: drawn\n  source: a page\n  group: dense\n  job:\n{job}  measured: {{step_s: 1.5, peak_memory_gib: 60}}\n"
    return ["case.yaml"], {"case.yaml": case}, ["validate", "case.yaml", "--json", *rng.choice([[], ["--simulate"]])]


def draw_fault(rng, root, program):
    fault = rng.choice(["gpu 5 slow 1.3", "nic 5 slow 2", "rail 0 slow 2", "node 1 slow 1.5", "spine lost", "spine slow 2", "gpu 5 at 10 ms", "node 1 at 5 ms"])
    return ["fault"], {"job.yaml": small_job(), "fault": fault}, ["simulate", "job.yaml", "--json", "--fault", "FAULT"]


def draw_import(rng, root, program):
    known = [path for path in sorted((root / "tests/import/published").iterdir()) if foreign.format_of(path.name)]
    path = rng.choice(known)
    whose = foreign.format_of(path.name)
    given = [] if whose in foreign.OF_CLUSTERS else [["--cluster", "dgx-h100-ndr400"], ["--cluster", "dgx-h100-ndr400", "--gpus", "256", "--set", "model.vocab=32000"], []]
    return [path.name], {path.name: path.read_text()}, ["import", whose, path.name, *(rng.choice(given) if given else [])]


def draw_table(rng, root, program):
    command = rng.choice([["import", "nccl-tests", "table.txt"], ["calibrate", "network", "table.txt", "--from", "dgx-h100-ndr400", "--cluster", "own.yaml"]])
    return ["table.txt"], {"table.txt": foreign.table(gpus=rng.choice([2, 8]))}, command


def draw_profile(rng, root, program):
    command = ["calibrate", "trace", "trace.json", *rng.choice([["--from", "dgx-h100-ndr400"], ["--job", "job.yaml"]]), "--gpu", "own.yaml"]
    return ["trace.json"], {"job.yaml": small_job(), "trace.json": foreign.trace()}, command


KINDS = {"job": draw_job_file, "cluster": draw_cluster_file, "gpu": draw_gpu_file, "model": draw_model_file, "hugging-face": draw_hugging_face,
         "routing": draw_routing, "whole-job": draw_whole_job, "trace": draw_trace, "scenario": draw_scenario, "measured-case": draw_measured_case,
         "fault": draw_fault, "import": draw_import, "table": draw_table, "profile": draw_profile}


def mutate(rng, root, program, folder):
    """Writes a mutated input into the folder and asks the program about it: the kind of input, the answer, what is wrong with it."""
    kind = rng.choice(list(KINDS) + ["job"] * 3)
    changed, files, command = KINDS[kind](rng, root, program)
    contents = {name: mutated(rng, text) if name in changed else text.encode() for name, text in files.items()}
    for name, content in contents.items():
        (pathlib.Path(folder) / name).write_bytes(content)
    command = [contents["fault"].replace(b"\0", b"").decode(errors="surrogateescape") if word == "FAULT" else word for word in command]
    answer = program.run(command, folder)
    wrong = list(wrong_with(answer))
    if command[0] == "import" and answer.code == 0 and not any(key in answer.out for key in foreign.SAID):
        wrong.append("an import with nothing in it")
    return kind, answer, wrong


def wrong_with(answer):
    yield from wrong_ending(answer)
    if answer.code not in (0, 1):
        return
    if answer.out.lstrip().startswith(b"{"):
        for method, result in json.loads(answer.out).get("results", {}).items():
            yield from nonsense(method, result)
    elif re.search(rb"\b(nan|inf|-inf|1\.79769e\+308)\b", re.sub(rb"(?m)^#.*", b"", answer.out)):
        yield "a number that is none"


def wrong_ending(answer):
    """Whatever is asked: it ends with a code of its own, a refusal with words alone, an answer with something printed."""
    if answer.hangs:
        yield "it does not end"
    elif answer.code not in (0, 1, 2):
        yield f"exit code {answer.code}: {answer.err[-200:]}"
    elif answer.code == 2 and (answer.out.strip() or not answer.err.strip()):
        yield "a refusal with results, or without words"
    elif answer.code < 2 and not answer.out.strip():
        yield f"exit code {answer.code} and nothing printed"


def rng_of(seed, number):
    return random.Random(f"{seed}/mutation/{number}")
