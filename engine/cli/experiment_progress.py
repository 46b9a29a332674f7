"""Shows how many points of an experiment are done, and how long the rest will take."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TextIO

from engine.cli.long_work import LongWork
from engine.domain.world import WORLDS
from engine.experiments.execution.campaign import Task
from engine.experiments.results.rows import Result


class PointsProgress(LongWork):
    """Shows how many points are done, and how long the rest takes; `take` gets each result."""

    def __init__(
        self,
        tasks: Sequence[Task],
        total: int,
        jobs: int,
        stream: TextIO | None = None,
    ):
        before = total - len(tasks)
        super().__init__("", total, before=before, unit="points", after_s=0.0, stream=stream)
        self.left = {world: sum(task.world == world for task in tasks) for world in WORLDS}
        self.spent_s = dict.fromkeys(self.left, 0.0)
        self.finished = dict.fromkeys(self.left, 0)
        self.jobs = jobs

    def take(self, result: Result) -> None:
        self.left[result.world] -= 1
        self.finished[result.world] += 1
        self.spent_s[result.world] += result.wall_s
        self.done()

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
