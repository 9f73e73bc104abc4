"""Rehearse from Python: its answers as dictionaries.

    import rehearse
    step = rehearse.predict("llama2-70b-128-a100", {"parallel.tp": 4, "parallel.dp": 4})
    print(step["results"]["analytic"]["step_s"])
    for plan, answer in rehearse.sweep("llama3-8b-8-h100", {"batch.micro": [1, 2, 4], "recompute": ["none", "full"]}):
        print(plan, answer if isinstance(answer, rehearse.Error) else answer["results"]["analytic"]["step_s"])

A job is a file, a ready-made name, or the job itself: a dictionary, or YAML of several lines.

One file, Python 3.9 and later, no dependencies. Predictions are made in this process by the module `_rehearse` where it is installed beside this
file; everything else, and all where it is not, by the program `rehearse`. $REHEARSE names a program, which then answers everything. What is
answered is the same.
"""

import concurrent.futures
import itertools
import json
import os
import re
import subprocess

try:
    import _rehearse
except ImportError:
    _rehearse = None

__all__ = ["Error", "run", "predict", "simulate", "compare", "explain", "names", "sweep", "in_process"]


class Error(Exception):
    """What was refused. `str()` is the whole message; `message` and `suggestion` are its parts, `file`, `line` and `column` its place ("" and 0:
    not known). `code`: 2 wrong input, 3 an internal error."""

    def __init__(self, whole, code, file="", line=0, column=0, message="", suggestion=""):
        super().__init__(whole)
        self.code, self.file, self.line, self.column, self.message, self.suggestion = code, file, line, column, message or whole, suggestion


def in_process():
    """Whether predictions are made in this process."""
    return _rehearse is not None and not os.environ.get("REHEARSE")


def _text(value):
    """A value of a setting as the program reads it: YAML, of which JSON is a part."""
    return value if isinstance(value, str) else json.dumps(value)


def _given(job):
    """The job itself, where it is neither a file nor a name."""
    if isinstance(job, dict):
        return json.dumps(job)
    return job if isinstance(job, str) and "\n" in job else None


_PLACE = re.compile(r"^(?:|(?P<file>.+?)(?::(?P<line>\d+)(?::(?P<column>\d+))?)?: )error: ", re.MULTILINE)
_EXCERPT = re.compile(r"\n *\d+ \| [^\n]*(?:\n +\| [^\n]*)?")
_HINT = re.compile(r"\n  (?=\S)")


def _refusal(said, code):
    """What the program said on standard error (docs/errors.md)."""
    found = _PLACE.search(said)
    if not found:
        return Error(said.strip(), code)
    whole = said[found.start():].rstrip("\n")
    rest = _EXCERPT.sub("", said[found.end():].rstrip("\n"), count=1)
    message, *suggestion = _HINT.split(rest, maxsplit=1)
    return Error(whole, code, found["file"] or "", int(found["line"] or 0), int(found["column"] or 0), message, "".join(suggestion))


def run(command, *arguments, settings=None, text=None):
    """`rehearse COMMAND ARGUMENTS --json --set ...` as a dictionary or list; `text`: of standard input. Exit code 1, an answer that is no (it does
    not fit), is an answer."""
    words = [os.environ.get("REHEARSE") or "rehearse", command, *map(str, arguments), "--json"]
    for key, value in (settings or {}).items():
        words += ["--set", f"{key}={_text(value)}"]
    done = subprocess.run(words, input=text or "", capture_output=True, encoding="utf-8", errors="replace", check=False)
    if done.returncode not in (0, 1) or not done.stdout:
        raise _refusal(done.stderr, done.returncode)
    return json.loads(done.stdout)


def _predict_here(job, settings):
    pairs = [(key, _text(value)) for key, value in (settings or {}).items()]
    given = _given(job)
    try:
        return json.loads(_rehearse.predict(os.fsencode(job), pairs) if given is None else _rehearse.predict_text(given, pairs))
    except _rehearse.Error as error:
        raise Error(str(error), 2, error.file, error.line, error.column, error.message, error.suggestion) from None
    except RuntimeError as error:
        raise Error(f"internal error: {error}", 3) from None


def _answer(command, job, settings):
    if command == "predict" and in_process():
        return _predict_here(job, settings)
    given = _given(job)
    return run(command, job if given is None else "-", settings=settings, text=given)


def predict(job, settings=None):
    """One step by formula. `settings`: keys (rehearse list keys) and their values."""
    return _answer("predict", job, settings)


def simulate(job, settings=None):
    """One step simulated."""
    return _answer("simulate", job, settings)


def compare(job, settings=None):
    """Formula, longest path and simulation side by side, with reasons."""
    return _answer("compare", job, settings)


def explain(job, settings=None):
    """What each feature of the job is worth."""
    return _answer("explain", job, settings)


def names(what):
    """Names of a list: "jobs", "models", "clusters", "gpus", "software", "keys", ..."""
    return [row["name"] for row in run("list", what)]


def sweep(job, space, command="predict"):
    """Every combination of a space {key: [values]}, in its order, as (settings, answer); the answer is an Error where a plan is refused."""
    plans = [dict(zip(space, values)) for values in itertools.product(*space.values())]

    def answer(plan):
        try:
            return _answer(command, job, plan)
        except Error as error:
            return error

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(zip(plans, pool.map(answer, plans)))
