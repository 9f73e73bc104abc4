"""Rehearse from Python: runs the program `rehearse` and gives its answers as dictionaries.

    import rehearse
    step = rehearse.predict("llama2-70b-128-a100", {"parallel.tp": 4})
    print(step["results"]["analytic"]["step_s"])
    for plan, answer in rehearse.sweep("llama3-8b-8-h100", {"batch.micro": [1, 2, 4], "recompute": ["none", "full"]}):
        print(plan, answer if isinstance(answer, rehearse.Error) else answer["results"]["analytic"]["step_s"])

One file, Python 3.9 and later, no dependencies. The program is found in $REHEARSE, else in $PATH.
"""

import concurrent.futures
import itertools
import json
import os
import subprocess

__all__ = ["Error", "run", "predict", "simulate", "compare", "explain", "names", "sweep"]


class Error(Exception):
    """What the program refused, with file, line, column and a suggestion. `code`: 2 wrong input, 3 an internal error."""

    def __init__(self, message, code):
        super().__init__(message)
        self.code = code


def _text(value):
    """A value of a setting as the program reads it: YAML, of which JSON is a part."""
    return value if isinstance(value, str) else json.dumps(value)


def run(command, *arguments, settings=None):
    """`rehearse COMMAND ARGUMENTS --json --set ...` as a dictionary or list. Exit code 1, an answer that is no (it does not fit), is an answer."""
    words = [os.environ.get("REHEARSE", "rehearse"), command, *map(str, arguments), "--json"]
    for key, value in (settings or {}).items():
        words += ["--set", f"{key}={_text(value)}"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1) or not done.stdout:
        raise Error(done.stderr.strip(), done.returncode)
    return json.loads(done.stdout)


def predict(job, settings=None):
    """One step by formula. `job`: a file, or a ready-made name; `settings`: keys (rehearse list keys) and their values."""
    return run("predict", job, settings=settings)


def simulate(job, settings=None):
    """One step simulated."""
    return run("simulate", job, settings=settings)


def compare(job, settings=None):
    """Formula, longest path and simulation side by side, with reasons."""
    return run("compare", job, settings=settings)


def explain(job, settings=None):
    """What each feature of the job is worth."""
    return run("explain", job, settings=settings)


def names(what):
    """Names of a list: "jobs", "models", "clusters", "gpus", "software", "keys", ..."""
    return [row["name"] for row in run("list", what)]


def sweep(job, space, command="predict"):
    """Every combination of a space {key: [values]}, in its order, as (settings, answer); the answer is an Error where a plan is refused."""
    plans = [dict(zip(space, values)) for values in itertools.product(*space.values())]

    def answer(plan):
        try:
            return run(command, job, settings=plan)
        except Error as error:
            return error

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(zip(plans, pool.map(answer, plans)))
