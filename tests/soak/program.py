"""Runs the program on a job and takes its answer apart."""
import dataclasses
import json
import os
import pathlib
import resource
import signal
import subprocess
import tempfile
import time

import yaml

LONGEST_S = 120  # of one run on a job of the soak's size, on a busy machine: beyond that it hangs
CPU_S = 20  # of one run
MEMORY_BYTES = 4 << 30


@dataclasses.dataclass
class Answer:
    """What a run of the program left: its exit code (None: it did not end in time), its output and, of -o, its files."""

    command: list
    code: int | None
    out: bytes
    err: str
    seconds: float
    files: dict

    @property
    def hangs(self):
        return self.code is None

    @property
    def refused(self):
        return self.code == 2

    @property
    def reason(self):
        """The first line of a refusal, without its position."""
        lines = [line for line in self.err.splitlines() if line.strip()] or [""]
        return lines[0].split("error: ")[-1]

    def document(self):
        return json.loads(self.out)

    def result(self, method="simulated"):
        return self.document()["results"][method]


def limit_resources():
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_S, CPU_S))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))


def limit_resources_of_sanitized():
    """AddressSanitizer reserves terabytes of addresses for its shadow: its own limit of resident memory holds instead."""
    resource.setrlimit(resource.RLIMIT_CPU, (10 * CPU_S, 10 * CPU_S))


def is_sanitized(path):
    return b"__asan_init" in pathlib.Path(path).read_bytes()


class PlainDumper(yaml.CSafeDumper):
    """Job files have no anchors."""

    def ignore_aliases(self, data):
        return True


def text_of(job):
    return yaml.dump(job, Dumper=PlainDumper, sort_keys=False, width=140)


class Program:
    def __init__(self, path, data):
        self.path, self.root = str(pathlib.Path(path).resolve()), data
        self.reference = str(pathlib.Path(self.path).parent / "tests" / "reference_step")
        self.environment = dict(os.environ, REHEARSE_DATA=str(data), NO_COLOR="1")
        self.limits = limit_resources
        if is_sanitized(self.path):
            self.limits = limit_resources_of_sanitized
            options = [self.environment.get("ASAN_OPTIONS"), f"hard_rss_limit_mb={MEMORY_BYTES >> 20}"]
            self.environment["ASAN_OPTIONS"] = ":".join(filter(None, options))

    def run(self, arguments, folder, timeout_s=LONGEST_S):
        """The program in that folder; once more where LeakSanitizer's own thread crashed at its end (google/sanitizers issue 1353)."""
        answer = self.execute([self.path, *arguments], folder, timeout_s)
        return self.execute([self.path, *arguments], folder, timeout_s) if "Tracer caught signal" in answer.err else answer

    def execute(self, command, folder, timeout_s=LONGEST_S):
        begin = time.monotonic()
        try:
            done = subprocess.run(command, cwd=folder, env=self.environment, stdin=subprocess.DEVNULL, capture_output=True, check=False,
                                  timeout=timeout_s, preexec_fn=self.limits)
            code = None if done.returncode == -signal.SIGXCPU or done.returncode == -signal.SIGKILL else done.returncode
            out, err = done.stdout, done.stderr.decode(errors="replace")
        except subprocess.TimeoutExpired:
            code, out, err = None, b"", ""
        return Answer(command, code, out, err, time.monotonic() - begin, {})

    def ask(self, command, job, sets=(), options=(), files=False):
        """A job (a mapping, or the text of one); `sets` as key=value. With `files` the answer holds what -o wrote, by name."""
        with tempfile.TemporaryDirectory(prefix="soak-") as folder:
            text = job if isinstance(job, str) else text_of(job)
            (pathlib.Path(folder) / "job.yaml").write_text(text)
            arguments = [command, "job.yaml", "--json", *(word for each in sets for word in ("--set", each)), *options]
            answer = self.run(arguments + (["-o", "out"] if files else []), folder)
            out = pathlib.Path(folder) / "out"
            if files and out.exists():
                answer.files = {path.name: path.read_bytes() for path in sorted(out.iterdir())}
            return answer

    def reference_steps(self, job, sets=(), options=()):
        """Seconds of the step by the model that shares no code with the engine, and of the same with every link's rate changed by up to 1e-12;
        None when that takes too long."""
        with tempfile.TemporaryDirectory(prefix="soak-") as folder:
            (pathlib.Path(folder) / "job.yaml").write_text(text_of(job))
            answer = self.execute([self.reference, "job.yaml", *sets, *options], folder)
        if answer.hangs:
            return None
        if answer.code != 0:
            raise RuntimeError(f"reference_step: {answer.err}")
        return [float(each) for each in answer.out.split()]
