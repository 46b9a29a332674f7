"""Reference computations run in another process: `transformers` is never imported into a run's own process.

`run_apart` starts a process per computation. Inside `one_process()` the first computation starts a process
that computes all later ones too, because importing `transformers` takes seconds; after `fork_references()`
that process is a copy of this one, in which torch is imported already. `prepare` lets it import and load
beside other work.

A process reads one JSON list a line, `[name, module, argument, …]`, calls `module.main([argument, …])`, and
answers with JSON lines: `[name, "said", words]` now and then, when the module calls `say`, and in the end
`[name, "ended", null]`, or the sentence of the error in place of null.
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import subprocess
import sys
import time
import traceback
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import IO, NoReturn, Protocol

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

TOLD_S = 1.0
"""Wall seconds between two words on how far a computation is."""

Said = Callable[[str], None]


def _nobody(words: str) -> None:
    """Nobody waits."""


class Started(Protocol):
    """A process that answers: what it reads, what it writes, and how it ended."""

    pid: int

    @property
    def stdin(self) -> IO[str] | None: ...

    @property
    def stdout(self) -> IO[str] | None: ...

    def kill(self) -> None: ...

    def wait(self) -> int: ...


class ReferenceProcess:
    """A process that computes one reference after another; it starts when it is first asked, or before.

    Questions have names: one that was interrupted, or for whose answer nobody waits, is still answered.
    """

    def __init__(self, begin: Callable[[], Started] | None = None) -> None:
        self._begin = begin or _program
        self._process: Started | None = None

    @property
    def pids(self) -> frozenset[int]:
        return frozenset() if self._process is None else frozenset({self._process.pid})

    def start(self) -> None:
        if self._process is None:
            self._process = self._begin()

    def compute(self, module: str, arguments: list[str], said: Said = _nobody) -> str | None:
        """Returns the error's sentence, or None."""
        with suppress(BrokenPipeError):
            asked = self.ask(module, arguments)
            assert self._process is not None and self._process.stdout is not None
            while line := self._process.stdout.readline():
                name, kind, words = json.loads(line)
                if name == asked and kind == "ended":
                    error: str | None = words
                    return error
                if name == asked:
                    said(words)
        assert self._process is not None
        return f"its process ended with status {self._process.wait()} before it answered"

    def ask(self, module: str, arguments: list[str]) -> str:
        """Ask without waiting for the answer; returns the question's name. Raises `BrokenPipeError`."""
        self.start()
        assert self._process is not None and self._process.stdin is not None
        name = uuid.uuid4().hex  # copies of this process ask the same one
        self._process.stdin.write(json.dumps([name, module, *arguments]) + "\n")
        self._process.stdin.flush()
        return name

    def close(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            for end in (self._process.stdin, self._process.stdout):
                with suppress(OSError):
                    assert end is not None
                    end.close()
            self._process = None


_shared: list[ReferenceProcess] = []


def fork_references(to_close: Sequence[int] = ()) -> None:
    """From now on a copy of this process, as it is now, computes all references. It would keep open whatever
    this one opened before, for the end of which somebody may wait: it closes the files `to_close`.
    """
    process = ReferenceProcess(partial(_copy, to_close))
    process.start()
    _shared.append(process)


def pids() -> frozenset[int]:
    """The processes that compute references for this one."""
    return frozenset[int]().union(*(process.pids for process in _shared))


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


def prepare(module: str, arguments: list[str]) -> None:
    """Let the shared process call `main` of `module` now, beside other work; without one, nothing happens."""
    if _shared:
        with suppress(BrokenPipeError):  # it has died: whoever asks next is told
            _shared[-1].ask(module, arguments)


def run_apart(module: str, spec: RunSpec, made: Path, *more: str, said: Said = _nobody) -> None:
    """`module.main(["SPEC.json", "MADE", …])` in another process, which may use all cores.

    `made` must be no other caller's. Raises `HostError` when it fails.
    """
    asked = made.with_suffix(".json")
    asked.write_text(spec.model_dump_json(), encoding="utf-8")
    arguments = [str(asked), str(made), *more]
    try:
        if _shared:
            error = _shared[-1].compute(module, arguments, said)
        else:
            with one_process():
                error = _shared[-1].compute(module, arguments, said)
    finally:
        asked.unlink(missing_ok=True)
    if error is not None:
        raise HostError(f"the reference of {spec.model.name} could not be computed: {error}")


def _program() -> subprocess.Popen[str]:
    """Start the process as a program. In an emulation it gets an ordinary priority: no clock waits for it. It
    stays in this session, since the kernel shares the cores out by sessions (sched(7), autogroup).
    """
    command = [sys.executable, "-c", f"from {__name__} import main; main()"]
    niceness = os.getpriority(os.PRIO_PROCESS, 0)
    if niceness < 0:
        command = ["nice", "-n", str(-niceness), *command]
    return subprocess.Popen(
        command,
        cwd=ROOT,
        env={**os.environ, **LIBRARY},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        process_group=0,  # Ctrl-C in a terminal is for the run
    )


class _Copy:
    """A copy of this process that answers."""

    def __init__(self, pid: int, stdin: IO[str], stdout: IO[str]):
        self.pid, self.stdin, self.stdout = pid, stdin, stdout
        self._status: int | None = None

    def kill(self) -> None:
        if self._status is None:
            os.kill(self.pid, signal.SIGKILL)

    def wait(self) -> int:
        if self._status is None:
            self._status = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        return self._status


def _copy(to_close: Sequence[int]) -> Started:
    asked, ask = os.pipe()
    answered, answer = os.pipe()
    child = os.fork()
    if not child:
        for descriptor in (ask, answered, *to_close):
            os.close(descriptor)
        _answer_and_end(asked, answer)
    os.close(asked)
    os.close(answer)
    return _Copy(child, os.fdopen(ask, "w"), os.fdopen(answered))


def _answer_and_end(asked: int, answer: int) -> NoReturn:
    """Answer in a copy of this process, with an ordinary priority, until that closes its end."""
    try:
        os.setpriority(os.PRIO_PROCESS, 0, max(0, os.getpriority(os.PRIO_PROCESS, 0)))
        os.environ.update(LIBRARY)
        _serve(os.fdopen(asked), os.fdopen(answer, "w"))
    finally:
        os._exit(0)


def main() -> None:
    """Answer on standard output what comes on standard input."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # standard output carries the answers, so what libraries print goes elsewhere
    _serve(sys.stdin, answers)


_tell: Said = _nobody
_told_s = 0.0


def say(words: str) -> None:
    """Tell whoever waits for this computation how far it is, once a second at most."""
    global _told_s
    if time.monotonic() - _told_s >= TOLD_S:
        _told_s = time.monotonic()
        _tell(words)


def _serve(questions: IO[str], answers: IO[str]) -> None:
    global _tell, _told_s

    def write(*line: object) -> None:
        answers.write(json.dumps(line) + "\n")
        answers.flush()

    for line in questions:
        name, module, *arguments = json.loads(line)
        _tell, _told_s = partial(write, name, "said"), time.monotonic()
        write(name, "ended", _error_of(module, arguments))


def _error_of(module: str, arguments: list[str]) -> str | None:
    try:
        importlib.import_module(module).main(arguments)
    except Exception as problem:
        return traceback.format_exception_only(problem)[-1].strip().splitlines()[-1]
    return None
