"""Shows how many points of an experiment are done, and how long the rest will take."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from typing import TextIO

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn

from engine.domain.units import human_s
from engine.experiments.execution.campaign import Task
from engine.experiments.results.rows import Result

LINES = 10
"""Lines that a pipe or a file gets over the whole time."""


class PointsProgress:
    """A context manager; `done` takes each result. On a terminal it is a bar, else a line now and then."""

    def __init__(
        self,
        tasks: Sequence[Task],
        total: int,
        jobs: int,
        stream: TextIO | None = None,
        clock: Callable[[], float] = time.monotonic,
    ):
        self.stream = stream or sys.stderr
        self.left = {
            world: sum(task.world == world for task in tasks)
            for world in ("simulated", "calculated", "emulated")
        }
        self.spent_s = dict.fromkeys(self.left, 0.0)
        self.finished = dict.fromkeys(self.left, 0)
        self.jobs, self.total, self.before = jobs, total, total - len(tasks)
        self.clock = clock
        self.bar: Progress | None = None
        self.task = TaskID(0)
        if self.stream.isatty():
            self.bar = Progress(
                TextColumn("{task.completed:.0f} of {task.total:.0f} points"),
                BarColumn(),
                TextColumn("{task.description}"),
                console=Console(file=self.stream),
                transient=True,
            )
            self.task = self.bar.add_task("", total=total, completed=self.before)

    def __enter__(self) -> PointsProgress:
        if self.bar:
            self.bar.start()
        return self

    def __exit__(self, *exc: object) -> None:
        if self.bar:
            self.bar.stop()

    def done(self, result: Result) -> None:
        self.left[result.world] -= 1
        self.finished[result.world] += 1
        self.spent_s[result.world] += result.wall_s
        number = self.before + sum(self.finished.values())
        remaining_s = self.remaining_s()
        about = "" if not remaining_s else f"about {human_s(remaining_s)} left"
        if self.bar:
            self.bar.update(self.task, completed=number, description=about)
        elif number == self.total or number % max(1, self.total // LINES) == 0:
            self.stream.write(f"{number} of {self.total} points{f', {about}' if about else ''}\n")
            self.stream.flush()

    def remaining_s(self) -> float | None:
        """The mean time of a point in each world × what is left there; None if a world has no point done
        yet.
        """
        remaining_s = 0.0
        for world, left in self.left.items():
            if left and not self.finished[world]:
                return None
            if left:
                share = 1 if world == "emulated" else self.jobs
                remaining_s += left * self.spent_s[world] / self.finished[world] / share
        return remaining_s
