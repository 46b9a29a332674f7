"""Reference computations run in another process: `transformers` is never imported into a run's own process.

`run_apart` starts a process per computation. Inside `one_process()` the first computation starts a process
that computes all later ones too, because importing `transformers` takes seconds. After `fork_references()`
each process is a copy of this one: torch, which is half of those seconds, is not imported again.

`python -m engine.models.reference.process` is that process. It reads one JSON list a line from standard
input, `[number, module, argument, …]`, calls `module.main([argument, …])`, and answers with one JSON line,
`[number, null]`, or the sentence of the error in place of null.
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import subprocess
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

from engine.domain.errors import HostError
from engine.domain.spec import RunSpec

ROOT = Path(__file__).resolve().parents[3]
LIBRARY = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_VERBOSITY": "error"}
"""The environment in which `transformers` is imported."""
LIBRARY_MODULES = (
    "transformers",
    "transformers.modeling_utils",
    "transformers.models.auto.modeling_auto",
    "transformers.models.auto.tokenization_auto",
    "transformers.models.gpt2.modeling_gpt2",
    "transformers.models.llama.modeling_llama",
)
"""What takes the library long to import, before it computes; other families take a tenth of a second more."""


class ReferenceProcess:
    """A process that computes one reference after another. It starts with the first one.

    Questions are numbered: one that was interrupted is still answered, when nobody waits for that any more.
    """

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None
        self._asked = 0

    def compute(self, module: str, arguments: list[str]) -> str | None:
        """Returns the error's sentence, or None."""
        if self._process is None:
            command = [sys.executable, "-m", "engine.models.reference.process"]
            self._process = _start(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self._process.stdin is not None and self._process.stdout is not None
        self._asked += 1
        answered, error = 0, None
        try:
            self._process.stdin.write(json.dumps([self._asked, module, *arguments]) + "\n")
            self._process.stdin.flush()
            while answered != self._asked and (answer := self._process.stdout.readline()):
                answered, error = json.loads(answer)
        except BrokenPipeError:
            answered = 0
        if answered != self._asked:
            return f"its process ended with status {self._process.wait()} before it answered"
        return error

    def close(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None


_shared: list[ReferenceProcess] = []
_forks = False


def fork_references() -> None:
    """From now on references are computed in copies of this process, which must never have threads."""
    global _forks
    _forks = True


@contextmanager
def one_process() -> Iterator[None]:
    """Inside this block one process computes all references; it ends with the block."""
    process = ReferenceProcess()
    _shared.append(process)
    try:
        yield
    finally:
        _shared.remove(process)
        process.close()


def run_apart(module: str, spec: RunSpec, made: Path, *more: str) -> None:
    """`python -m module SPEC.json MADE …` in another process, which may use all cores.

    `made` must be no other caller's. Raises `HostError` when it fails.
    """
    asked = made.with_suffix(".json")
    asked.write_text(spec.model_dump_json(), encoding="utf-8")
    arguments = [str(asked), str(made), *more]
    once = _fork_once if _forks else _run_once
    try:
        error = _shared[-1].compute(module, arguments) if _shared else once(module, arguments)
    finally:
        asked.unlink(missing_ok=True)
    if error is not None:
        raise HostError(f"the reference of {spec.model.name} could not be computed: {error}")


def _run_once(module: str, arguments: list[str]) -> str | None:
    """Returns the last line of standard error if the process fails."""
    command = [sys.executable, "-m", module, *arguments]
    with _start(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
        try:
            _, complaint = process.communicate()
        except BaseException:
            process.kill()
            raise
    if not process.returncode:
        return None
    return (complaint.strip().splitlines() or ["no message"])[-1]


def _fork_once(module: str, arguments: list[str]) -> str | None:
    """Returns the error's sentence, or None."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        _compute_and_end(module, arguments, writing)
    os.close(writing)
    try:
        with os.fdopen(reading) as answers:
            answer = answers.read()
    except BaseException:
        os.kill(child, signal.SIGKILL)
        raise
    finally:
        _, status = os.waitpid(child, 0)
    if not answer:
        return f"its process ended with status {os.waitstatus_to_exitcode(status)} before it answered"
    error: str | None = json.loads(answer)
    return error


def _compute_and_end(module: str, arguments: list[str], answers: int) -> NoReturn:
    """Compute in a copy of this process, with an ordinary priority, on all cores; then end it."""
    try:
        import torch

        os.setsid()
        os.setpriority(os.PRIO_PROCESS, 0, max(0, os.getpriority(os.PRIO_PROCESS, 0)))
        os.environ.update(LIBRARY)
        torch.set_num_threads(len(os.sched_getaffinity(0)))
        os.write(answers, json.dumps(_error_of(module, arguments)).encode())
    finally:
        os._exit(0)


def _start(
    command: list[str], stdout: int, stdin: int | None = None, stderr: int | None = None
) -> subprocess.Popen[str]:
    """Start a command. In an emulation it gets an ordinary priority: no clock waits for it."""
    environment = {**os.environ, **LIBRARY}
    niceness = os.getpriority(os.PRIO_PROCESS, 0)
    if niceness < 0:
        command = ["nice", "-n", str(-niceness), *command]
    return subprocess.Popen(
        command,
        cwd=ROOT,
        env=environment,
        stdin=stdin,
        stdout=stdout,
        stderr=stderr,
        text=True,
        start_new_session=True,
    )


def main() -> int:
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # standard output carries the answers, so what libraries print goes elsewhere
    for line in sys.stdin:
        number, module, *arguments = json.loads(line)
        answers.write(json.dumps([number, _error_of(module, arguments)]) + "\n")
        answers.flush()
    return 0


def _error_of(module: str, arguments: list[str]) -> str | None:
    try:
        importlib.import_module(module).main(arguments)
    except Exception as problem:
        return traceback.format_exception_only(problem)[-1].strip().splitlines()[-1]
    return None


if __name__ == "__main__":
    sys.exit(main())
