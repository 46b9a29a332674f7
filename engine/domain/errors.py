"""All errors shown to people. A message is one sentence: what, where, expected, actual, remedy.

EdgeLoomError
├── SpecError        bad input: a cluster, model, workload, scenario or parameter   exit 2
├── PlanError        no plan exists: which constraint binds on which device          exit 2
├── HostError        this machine cannot do it: what is missing and how to get it    exit 2
│   └── OpsError     a step of `./loom` has failed (webapp/ops/places.py)
└── RunError         a run that started and has a result other than "finished"       exit 3
    ├── OutOfMemory  a device needs more than its memory_bytes
    ├── OutOfTime    a token takes longer than the workload's limit
    ├── PeerFailed   a device failed or was silent too long
    ├── Deadlock     ranks wait for messages that no rank will send
    ├── WrongProgram a program computes on shapes that do not go together, or leaves work out
    └── Cancelled    the run was stopped on request
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from engine.domain.units import needs_and_has


class EdgeLoomError(Exception):
    """Base of all errors with a sentence for people; `exit_status` is the command line's."""

    exit_status = 2


class SpecError(EdgeLoomError):
    """Bad input. `fields` pairs every field path with its complaint, for forms and the API."""

    def __init__(self, message: str, fields: Sequence[tuple[str, str]] = ()):
        super().__init__(message)
        self.fields = list(fields)


def reworded(error: SpecError, words: Callable[[str], str]) -> SpecError:
    """The same complaint in other words: those of the file that it is about."""
    return SpecError(words(str(error)), [(words(path), words(message)) for path, message in error.fields])


class PlanError(EdgeLoomError):
    """The strategy finds no plan that satisfies the constraints."""


class HostError(EdgeLoomError):
    """The machine lacks something that the command needs, or a step of its set-up failed."""


class RunError(EdgeLoomError):
    """A run that started and did not finish; `device` and `time_s` (virtual) say where and when."""

    exit_status = 3

    def __init__(self, message: str, device: str = "", time_s: float = 0.0):
        super().__init__(message)
        self.device = device
        self.time_s = time_s


class OutOfMemory(RunError):
    """A device needs `need_bytes` of memory and has `have_bytes`, by its ledger."""

    def __init__(
        self,
        device: str,
        need_bytes: int,
        have_bytes: int,
        what: str,
        time_s: float = 0.0,
        remedy: str = "give it more memory, or choose a strategy that splits the weights",
    ):
        super().__init__(
            f"{device} {needs_and_has(need_bytes, have_bytes, f' for {what}')}: {remedy}.",
            device,
            time_s,
        )
        self.need_bytes = need_bytes
        self.have_bytes = have_bytes


class OutOfTime(RunError):
    """A token took longer than the limit of the workload."""


class PeerFailed(RunError):
    """A device failed or was silent too long while others needed it."""


class Deadlock(RunError):
    """Every rank waits for a message, and none is being sent."""


class WrongProgram(RunError):
    """A program gave an operation shapes that do not go together, or left a part of a layer out."""


class Cancelled(RunError):
    """The run was stopped on request."""
