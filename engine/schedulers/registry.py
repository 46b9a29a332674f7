"""The list of all schedulers. Forms, command-line options, documentation and tests derive from it."""

from __future__ import annotations

from engine.domain.errors import SpecError
from engine.schedulers.chunked import Chunked
from engine.schedulers.continuous import Continuous
from engine.schedulers.disaggregated import Disaggregated
from engine.schedulers.fcfs import Fcfs
from engine.schedulers.scheduler import Scheduler

SCHEDULERS: tuple[Scheduler, ...] = (Fcfs(), Continuous(), Chunked(), Disaggregated())
_BY_NAME = {one.name: one for one in SCHEDULERS}


def scheduler(name: str) -> Scheduler:
    """The scheduler of this name. Raises `SpecError`, which names the known ones."""
    if name not in _BY_NAME:
        raise SpecError(f"scheduler is {name}, which is unknown: choose one of {', '.join(_BY_NAME)}.")
    return _BY_NAME[name]
