"""Results of points, and the flat rows that figures, tables and claims read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import Field

from engine.domain.errors import EdgeLoomError, PlanError, RunError, SpecError
from engine.domain.quantity import Coordinate, Coordinates, Metrics
from engine.domain.report import RunReport
from engine.domain.values import Count, Value
from engine.domain.world import MEASURED, World
from engine.experiments.design.expand import Point
from engine.experiments.results.metrics import metrics_of
from engine.experiments.results.versions import Versions
from engine.reports.missed import missed_text, was_undisturbed
from engine.reports.participation import alone, computation, unfelt_text

REFUSED, NO_PLAN, FAILED, UNDISTURBED = "refused", "no_plan", "failed", "undisturbed"
"""Outcomes of points besides those of runs: the spec is refused, the strategy finds no plan or cannot, an
error of the program or the machine; and a run that ended before a change that it is to show."""

REPEATABLE = (FAILED, "cancelled", "peer_lost", "deadlock")
"""Outcomes that another attempt may change."""

Key = tuple[str, str]
"""Digest and world: what one result is of."""


class Result(Value):
    """What one run gave, without its coordinates, which each experiment has its own of.

    `code_version` is that of the code that made it, `calibration` a hash of the host's times where
    operations took them. `run` names where the whole report is kept, "" if it is not. `wall_s` is how long it
    took. `alone` is the only device that computed, `unfelt` what changes could not change
    (`engine/reports/participation.py`).
    """

    digest: str
    world: World
    code_version: str = ""
    calibration: str = ""
    outcome: str
    sentence: str = ""
    alone: str = ""
    unfelt: str = ""
    metrics: Metrics = Field(default_factory=dict)
    wall_s: float = 0.0
    run: str = ""

    @property
    def key(self) -> Key:
        return self.digest, self.world


class Row(Value):
    """One result at its point. `stale`: made by another version of the code, or by another calibration."""

    coordinates: Coordinates
    seed: Count
    world: World
    digest: str
    outcome: str
    sentence: str = ""
    alone: str = ""
    unfelt: str = ""
    metrics: Metrics = Field(default_factory=dict)
    code_version: str = ""
    calibration: str = ""
    stale: bool = False
    wall_s: float = 0.0
    run: str = ""

    @property
    def finished(self) -> bool:
        return self.outcome == "finished"

    @property
    def valid(self) -> bool:
        """Whether the times count: not of an emulation whose times do not agree with their models."""
        return self.metrics.get("valid") != 0

    @property
    def place(self) -> dict[str, Coordinate]:
        """The coordinates of the row, with its world."""
        return {**self.coordinates, "world": self.world}

    @property
    def computation(self) -> str:
        """Equal for rows of one cluster and workload that are one computation by several names, of whichever
        seeds and repeats: by operations, memory and bytes, and by the predicted time, since a measured one
        differs every time. "" where it is not known.
        """
        latency_s = self.metrics.get("predicted_latency_s" if self.world in MEASURED else "latency_s")
        operations, peaks_bytes, payloads = (
            [(name, value) for name, value in sorted(self.metrics.items()) if name.startswith(start)]
            for start in ("flops[", "peak_memory_bytes[", "payload_bytes[")
        )
        devices = [f"{name}={value:.6g}" for name, value in operations if value]
        if not self.finished or latency_s is None or not devices:
            return ""
        figures = [latency_s, *(value for _, value in payloads)]
        return computation(devices, figures, [value for _, value in peaks_bytes])

    def flat(self) -> dict[str, Any]:
        """One level: coordinates, then what is known of the run, then metrics."""
        about = self.model_dump(mode="json", exclude={"coordinates", "metrics"})
        return {**self.coordinates, **about, "computation": self.computation, **self.metrics}


def result_of(report: RunReport, digest: str, world: World, **about: Any) -> Result:
    """The result in a report; `about` are the other fields of `Result`."""
    return Result(
        digest=digest,
        world=world,
        outcome=UNDISTURBED if was_undisturbed(report) else report.outcome.kind,
        sentence=report.outcome.sentence or missed_text(report),
        alone=alone(report),
        unfelt=unfelt_text(report),
        metrics=metrics_of(report),
        **about,
    )


def failure(error: Exception, digest: str, world: World, **about: Any) -> Result:
    """The result of a run that ended in `error` before it had a report."""
    outcome, sentence = FAILED, str(error)
    if isinstance(error, PlanError):
        outcome = NO_PLAN
    elif isinstance(error, SpecError):
        outcome = REFUSED
    elif not isinstance(error, RunError | EdgeLoomError):
        sentence = f"the program failed: {type(error).__name__}: {error}"
    return Result(digest=digest, world=world, outcome=outcome, sentence=sentence, **about)


def rows(
    points: Iterable[Point],
    worlds: Iterable[World],
    results: Mapping[Key, Result],
    versions: Versions,
) -> tuple[Row, ...]:
    """A row of every point and world that has a result or cannot have one, in the order of the points.

    Results of other versions than the present ones are stale.
    """
    found = []
    every_world = tuple(worlds)
    for point in points:
        for world in every_world:
            if point.spec is None:
                result = Result(digest="", world=world, outcome=REFUSED, sentence=point.problem)
            elif (point.digest, world) in results:
                result = results[point.digest, world]
            else:
                continue
            about = result.model_dump(exclude={"world"})
            row = Row(coordinates=point.coordinates, seed=point.seed, world=world, **about)
            found.append(row.model_copy(update={"stale": is_stale(result, versions)}))
    return tuple(found)


def is_stale(result: Result, versions: Versions) -> bool:
    """Whether other versions made it than the present ones, where both are known."""
    return bool(versions.reason_stale(result.world, result.code_version, result.calibration))
