"""Carries out the points of an experiment that have no result yet, in several processes, and keeps each
result at once: whatever is stopped or killed goes on where it was.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import sys
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from typing import Any, NamedTuple

from engine.domain.errors import HostError, RunError
from engine.domain.host_times import HostProfile
from engine.domain.parent import end_with
from engine.domain.spec import MethodOrigin, RunSpec
from engine.domain.world import WORLDS, World
from engine.experiments.design.expand import Point
from engine.experiments.execution.point import Emulation, attempt, carry_out, version_of
from engine.experiments.results.rows import REPEATABLE, Key, Result, failure, is_stale
from engine.experiments.results.versions import Versions
from engine.strategies.registry import add_source, sources

AHEAD_PER_PROCESS = 2
"""Points handed to the pool per process, so that none waits for work and few are lost when it dies."""

LISTENS_S = 0.5
"""A signal that comes just before the main thread begins to wait is only seen when this wait ends."""


class Task(NamedTuple):
    """One run to carry out, for all points that share it; `profile` are this host's times, if needed."""

    spec: RunSpec
    digest: str
    world: World
    profile: HostProfile | None = None


def tasks_of(
    points: Sequence[Point],
    worlds: Sequence[World],
    known: Mapping[Key, Result],
    versions: Versions,
    retry: bool = False,
    repeat_stale: bool = False,
) -> tuple[Task, ...]:
    """What is left to do, each run once: the quick worlds first. `retry` repeats runs that failed for a
    reason that may have gone, `repeat_stale` results of other versions.
    """
    found: dict[Key, Task] = {}
    for world in sorted(worlds, key=WORLDS.index):
        for point in points:
            if point.spec is None:
                continue
            result = known.get((point.digest, world))
            again = result is not None and (
                (retry and result.outcome in REPEATABLE) or (repeat_stale and is_stale(result, versions))
            )
            if result is None or again:
                found.setdefault((point.digest, world), Task(point.spec, point.digest, world))
    return tuple(found.values())


def carry_out_all(
    tasks: Sequence[Task], keep: Callable[[Result], None], jobs: int, emulation: Emulation | None = None
) -> Iterator[Result]:
    """Results in the order in which they are ready; `keep` stores each before it is given.

    Predictions run in `jobs` processes; emulations one after the other, in this process, once those are done.
    Raises `HostError` if this machine cannot carry them out. Leaving the iterator early ends the processes.
    """
    if any(task.world == "nodes" for task in tasks):
        raise HostError(
            "worlds: has nodes, and boards are reached through the server that they have joined: upload the "
            "experiment there, or leave that world out."
        )
    pooled = [task for task in tasks if task.world != "emulated"]
    for result in _in_pool(pooled, jobs) if jobs > 1 and len(pooled) > 1 else _one_by_one(pooled):
        keep(result)
        yield result
    for task in tasks:
        if task.world == "emulated":
            result = carry_out(*task, emulation)
            keep(result)
            yield result


def _one_by_one(tasks: Sequence[Task]) -> Iterator[Result]:
    for task in tasks:
        yield carry_out(*task)


def _in_pool(tasks: Sequence[Task], jobs: int) -> Iterator[Result]:
    """A process that dies loses only what it was doing: those points are tried once more one by one, and one
    that kills its process again has failed.
    """
    waiting = deque(tasks)
    while waiting:
        suspects: deque[Task] = deque()
        yield from _until_broken(waiting, jobs, AHEAD_PER_PROCESS, suspects)
        while suspects:
            again: deque[Task] = deque()
            yield from _until_broken(suspects, 1, 1, again)
            for task in again:
                death = RunError(
                    "the process that carried it out died, twice: has this machine enough memory?"
                )
                yield failure(death, task.digest, task.world, code_version=version_of(task.world))


def _until_broken(waiting: deque[Task], jobs: int, ahead: int, suspects: deque[Task]) -> Iterator[Result]:
    """Results until all tasks are done or a process died, with `ahead` of them handed to each of at most
    `jobs` processes; `suspects` are then those that were under way.
    """
    jobs = min(jobs, len(waiting))
    context = multiprocessing.get_context("spawn")
    given = os.getpid(), sources()
    pool = ProcessPoolExecutor(jobs, mp_context=context, initializer=_serve_parent, initargs=given)
    running: dict[Future[Result], Task] = {}
    try:
        while waiting or running:
            while waiting and len(running) < ahead * jobs:
                with _without_ctrl_c(), _without_program():
                    running[pool.submit(attempt, *waiting[0])] = waiting[0]
                waiting.popleft()
            done, _ = wait(running, LISTENS_S, FIRST_COMPLETED)
            for future in done:
                result = future.result()
                del running[future]
                yield result.model_copy(update={"code_version": version_of(result.world)})
    except BrokenProcessPool:
        suspects += running.values()
    finally:
        _end(pool, running)


@contextlib.contextmanager
def _without_ctrl_c() -> Iterator[None]:
    """Ctrl-C, which reaches all processes, waits for the end of this block; in a process that is started in
    it, until that can leave it to its parent: it imports for seconds before.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextlib.contextmanager
def _without_program() -> Iterator[None]:
    """A process that is started inside the block does not import the program of this one: a plain script
    would run again in it, from its first line.
    """
    program = sys.modules["__main__"]
    hidden: dict[str, Any] = {
        name: vars(program)[name] for name in ("__spec__", "__file__") if name in vars(program)
    }
    program.__spec__ = None
    vars(program).pop("__file__", None)
    try:
        yield
    finally:
        vars(program).update(hidden)


def _end(pool: ProcessPoolExecutor, running: Collection[Future[Result]]) -> None:
    """Ends the processes without waiting for what they are doing."""
    for future in running:
        future.cancel()
    for process in list((getattr(pool, "_processes", None) or {}).values()):
        if running:
            process.terminate()
    pool.shutdown(wait=True, cancel_futures=True)


def _serve_parent(parent: int, methods: Sequence[tuple[str, MethodOrigin]]) -> None:
    """Leave Ctrl-C to the parent; have its methods of files; die with it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    end_with(parent)
    for text, origin in methods:
        add_source(text, origin)
