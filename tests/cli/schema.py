#!/usr/bin/env python3
"""What `REHEARSE schema` prints: is it valid, do the shipped jobs keep to it, and do malformed ones of the kind that a schema can see not?

schema.py REHEARSE ROOT
"""

import json
import pathlib
import re
import subprocess
import sys

import yaml
from jsonschema import Draft202012Validator


class Core(yaml.SafeLoader):
    """YAML 1.2's core schema, which editors use: `no` is a text, 1e6 a number."""


Core.yaml_implicit_resolvers = {}
for tag, pattern, first in [
    ("bool", r"true|false", "tf"),
    ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    ("int", r"[-+]?[0-9]+", "-+0123456789"),
    ("float", r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|-?\.inf|\.nan", "-+.0123456789"),
]:
    Core.add_implicit_resolver("tag:yaml.org,2002:" + tag, re.compile(f"^(?:{pattern})$"), list(first))
Core.add_constructor("tag:yaml.org,2002:int", lambda loader, node: int(loader.construct_scalar(node)))
Core.add_constructor("tag:yaml.org,2002:float", lambda loader, node: float(loader.construct_scalar(node).replace(".inf", "inf").replace(".nan", "nan")))

# What a schema cannot see: what several keys mean together, and how a number is written.
unseen = set(
    "empty-section gpus-is-octal quantity-is-huge steps-too-many-for-counts order-incomplete order-repeats".split()
)


def malformed(topic):
    for entry in topic.read_text().split("\n=== ")[1:]:
        name, rest = entry.split("\n", 1)
        yield name, rest.split("\n--- is refused\n")[0]


def schema_of(program, *kind):
    schema = json.loads(subprocess.run([program, "schema", *kind], check=True, capture_output=True).stdout)
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema)


def complaints(validator, jobs):
    for path in jobs:
        for error in validator.iter_errors(yaml.load(path.read_text(), Core)):
            yield f"{path.name}: {error.json_path}: {error.message[:200]}"


def main(program, root):
    validator = schema_of(program)
    wrong = []
    jobs = sorted((root / "workloads/jobs").glob("*.yaml"))
    wrong += complaints(validator, jobs)
    others = 0
    for folder in sorted(path for path in (root / "workloads/jobs").iterdir() if path.is_dir()):  # named by the kind of its jobs
        of_kind = schema_of(program, "--kind", folder.name)
        own = sorted(folder.glob("*.yaml"))
        others += len(own)
        wrong += complaints(of_kind, own)
        wrong += [f"{path.name} of kind {folder.name} keeps to the schema of training" for path in own if validator.is_valid(yaml.load(path.read_text(), Core))]
        if of_kind.is_valid(yaml.load(jobs[0].read_text(), Core)) or of_kind.is_valid({**yaml.load(own[0].read_text(), Core), "serv": 1}):
            wrong.append(f"the schema of kind {folder.name} takes anything")
    first = yaml.load(jobs[0].read_text(), Core)
    for path in sorted((root / "workloads/faults").glob("*.yaml")):
        for error in validator.iter_errors({**first, "faults": yaml.load(path.read_text(), Core)}):
            wrong.append(f"{path.name}: {error.json_path}: {error.message[:200]}")
    for source in [{"rat": "1 /day"}, {"rate": "1 day"}, {"kind": "slower"}, {"faults": [{"att": "3 h"}]}, {"faults": [{"at": "3 h", "node": "a"}]}]:
        if validator.is_valid({**first, "faults": {"some": {"source": "poisson", **source}}}):
            wrong.append(f"{source} keeps to the schema")
    for items, fine in [(["gpu 5 at 3.2 s", "gpus 1 % slow 1.1 to 1.5", "spine lost"], True), (["disk 5 at 3 s"], False), (["5"], False)]:
        if validator.is_valid({**first, "simulation": {"faults": items}}) != fine:
            wrong.append(f"simulation.faults: {items} {'does not keep' if fine else 'keeps'} to the schema")
    seen = 0
    for topic in ["keys", "numbers", "choices"]:
        for name, job in malformed(root / f"tests/job/malformed/{topic}.txt"):
            if name in unseen:
                continue
            try:
                document = yaml.load(job, Core)
            except yaml.YAMLError:
                continue
            seen += 1
            if validator.is_valid(document):
                wrong.append(f"{topic}/{name} keeps to the schema")
    print("\n".join(wrong) or f"{len(jobs)} and {others} jobs keep to the schema, {seen} malformed ones do not")
    return 1 if wrong else 0


sys.exit(main(sys.argv[1], pathlib.Path(sys.argv[2])))
