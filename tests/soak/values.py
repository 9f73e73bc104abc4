"""Every key of every kind of job with values that it cannot have and words that are nearly right: the program refuses them where they stand, or
answers with numbers that make sense."""
import copy
import itertools
import json
import math
import pathlib
import random
import re

import yaml

from mutations import wrong_ending
from program import text_of

KINDS = ("", "serving", "federated")
ANYTHING = [None, True, "nonesuch", "", -1, 0, 1.5, 1e308, 10**30, math.nan, math.inf, -math.inf, [], {}, [[]], {"nonesuch": 1}, "1", "1 nonesuch", "-1 us", "1e308 GB/s", "nan s"]
LARGEST = 1e100  # of a result: quantities go to 1e30
JOB = {"model": "llama3-8b", "cluster": "dgx-h100-ndr400", "gpus": 16, "parallel": {"tp": 2, "sp": True},
       "batch": {"global": 16, "micro": 1, "sequence": 2048}, "optimizer": {"sharding": "zero1"}}
EXPERTS = {**JOB, "model": "mixtral-8x7b", "gpus": 64, "batch": {"global": 64, "micro": 1, "sequence": 2048}, "parallel": {"ep": 8, "etp": 1, "tp": 2, "sp": True}}


def resolved(program, folder, job, *options):
    """The job with everything in it, or nothing where it is refused."""
    out = pathlib.Path(folder) / "resolved"
    (pathlib.Path(folder) / "job.yaml").write_text(job if isinstance(job, str) else text_of(job))
    answer = program.run(["predict", "job.yaml", "--json", "-o", str(out), *options], folder)
    return yaml.load((out / "resolved-job.yaml").read_text(), Loader=yaml.CSafeLoader) if answer.code in (0, 1) else None


def names(root, folder):
    return sorted(path.stem for path in (root / folder).glob("*.yaml"))


def jobs_of(root, kind):
    """What is resolved for its keys: of training one small job of each stack, cluster and model, and the ready-made jobs of the kind."""
    if not kind:
        yield from ({**JOB, "software": name} for name in names(root, "platforms/software"))
        yield from ({**EXPERTS, "software": name} for name in names(root, "platforms/software"))
        yield from ({**JOB, "cluster": name, "gpus": 2} for name in names(root, "platforms/clusters"))
        yield from ({**JOB, "model": name, "parallel": {}} for name in names(root, "workloads/models"))
    yield from (path.read_text() for path in sorted((root / "workloads/jobs" / kind).glob("*.yaml")))


class Keys:
    """The keys of a kind of job and documents that have them: so many, drawn, or with 0 of all jobs that are not refused."""

    def __init__(self, program, root, folder, kind, rng, most=0):
        self.kind = kind
        listed = program.run(["list", "keys", "--json", *(["--kind", kind] if kind else [])], folder)
        self.keys = {key["name"]: key for key in json.loads(listed.out)}
        jobs = list(jobs_of(root, kind))
        rng.shuffle(jobs)
        each_that_is_one = filter(None, (resolved(program, folder, job) for job in jobs))
        self.documents = list(itertools.islice(each_that_is_one, most or None))

    def document_with(self, path):
        """One that has the most of the key's path."""
        return copy.deepcopy(max(self.documents, key=lambda each: depth(each, path)))

    def sample(self, name):
        """A value that the key may have."""
        key = self.keys[name]
        return {"text": "drawn", "choice": (key.get("choices") or [""])[0], "truth": True, "whole": key.get("min", 1), "number": key.get("min", 1),
                "quantity": SAMPLES.get(key.get("unit"), "1 s")}.get(key["type"], {})

    def required_of(self, parent):
        """The keys that a mapping made here must have."""
        prefix = parent + "." if parent else ""
        return {name[len(prefix):]: self.sample(name) for name, key in self.keys.items()
                if key["default"] == "required" and name.startswith(prefix) and "." not in name[len(prefix):] and name != parent}


SAMPLES = {"B": "1 GiB", "B/s": "1 GB/s", "FLOP/s": "1 TFLOP/s", "s": "1 ms", "W": "700 W"}


def depth(document, path):
    count = 0
    for part in path.split("."):
        document = step_into(document, part)
        if document is None:
            return count
        count += 1
    return count + (not isinstance(document, (dict, list)))


def step_into(document, part):
    if isinstance(document, list):
        document = document[0] if document else None
    if not isinstance(document, dict):
        return None
    return next(iter(document.values()), None) if part == "*" else document.get(part)


def place(keys, document, path, value, rename=None):
    """The document with that value at the key's path; with `rename` the last key is called so. Mappings that are not there are made."""
    parts, node = path.split("."), document
    for number, part in enumerate(parts[:-1]):
        node = node[0] if isinstance(node, list) else node
        if part == "*":
            part = next(iter(node), "drawn")
        child = node.get(part)
        if not (isinstance(child, dict) or (isinstance(child, list) and child and isinstance(child[0], dict))):
            known = ".".join(parts[:number + 1])
            made = keys.required_of(known)
            node[part] = [made] if keys.keys.get(known, {}).get("type") == "list" else made
        node = node[part]
    node = node[0] if isinstance(node, list) else node
    last = next(iter(node), "drawn") if parts[-1] == "*" else parts[-1]
    if rename:
        node.pop(last, None)
    node[rename or last] = value
    return document


def misspelt(word):
    """With a letter left out in its middle."""
    return word[:len(word) // 2] + word[len(word) // 2 + 1:]


def values_of(key):
    """Values to try, and whether the refusal must name the right one."""
    yield from ((value, None) for value in ANYTHING)
    for choice in key.get("choices", []):
        if len(choice) > 4 and misspelt(choice) not in key["choices"]:
            yield misspelt(choice), choice
    for bound, outside in (("min", -1), ("max", 1)):
        if bound in key and key["type"] in ("whole", "number"):
            yield key[bound], None
            yield key[bound] + outside, None
    if key["type"] == "quantity":
        yield from ((f"{number} {unit}", None) for number in ("0", "-1", "1e-300", "1e300") for unit in ("s", "GiB", "GB/s", "TFLOP/s", "W", "Gbps"))


def cases_of(keys):
    """Path, value, the word that the refusal must name, the name under which the key stands."""
    for path, key in keys.keys.items():
        for value, near in values_of(key):
            yield path, value, near, None
        last = path.split(".")[-1]
        if len(last) > 3:
            yield path, keys.sample(path), last, misspelt(last)


def command_of(keys, path):
    top = path.split(".")[0]
    if not keys.kind and top in ("training", "checkpoint", "faults", "recovery"):
        return "run"
    return "simulate" if top in ("simulation", "routing") and not keys.kind else "predict"


def ask(program, folder, keys, case):
    path, value, near, rename = case
    document = keys.document_with(path)
    if rename and depth(document, path.rpartition(".")[0]) < path.count("."):
        near = None  # a mapping that is made for it may be of a kind that has other keys
    document = place(keys, document, path, value, rename)
    (pathlib.Path(folder) / "job.yaml").write_text(text_of(document))
    answer = program.run([command_of(keys, path), "job.yaml", "--json"], folder)
    return answer, list(wrong_answers(answer, near, rename))


def wrong_answers(answer, near, rename):
    yield from wrong_ending(answer)
    if answer.code == 2:
        if not re.match(r"\S+:\d+:\d+: error: .", answer.err.split("\n", 1)[0]):
            yield f"a refusal without its place: {answer.err[:200]}"
        elif rename and f"unknown key '{rename}'" not in answer.err:
            return  # another key is of no use without it, and comes first
        elif near and "did you mean" not in answer.err and re.search(rf"known: .*\b{near}\b", answer.err):
            yield f"a refusal that does not name '{near}': {answer.err[:300]}"
    elif answer.code in (0, 1):
        if near:
            yield f"'{near}' misspelt is no mistake"
        yield from (f"{where} is {number}" for where, number in numbers(json.loads(answer.out)) if not abs(number) < LARGEST)


def numbers(document, where=""):
    if isinstance(document, dict):
        for key, each in document.items():
            yield from numbers(each, f"{where}.{key}")
    elif isinstance(document, list):
        for each in document:
            yield from numbers(each, where)
    elif isinstance(document, (int, float)):
        yield where, document


def drawn(program, root, folder, seed, count):
    """Pairs of keys and a case of them: so many, or all; in an order of their own, so that any part is of all kinds."""
    rng = random.Random(f"{seed}/values")
    kinds = [Keys(program, root, folder, kind, rng, math.ceil(count / 5)) for kind in KINDS]
    pairs = [(keys, case) for keys in kinds for case in cases_of(keys)]
    rng.shuffle(pairs)
    return pairs[:count] if count else pairs
