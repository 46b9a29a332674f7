"""Runs with an input moved, and how much ours moves with it: what follows from an input confirms nothing."""

from __future__ import annotations

import json
import statistics
from collections.abc import Mapping, Sequence, Set
from functools import cache
from pathlib import Path

from engine.domain.claim import Within
from engine.domain.cluster import DeviceSpec
from engine.domain.experiment import Experiment
from engine.domain.spec import RunSpec, spec_digest
from engine.experiments.design.expand import Point
from engine.experiments.results.cells import cells, chosen
from engine.experiments.results.claims import NEUTRAL, verdicts
from engine.experiments.results.published import compare_published
from engine.experiments.results.rows import Row
from engine.reproductions.compared import compared_points, is_at
from engine.reproductions.declared import Input

FILE = Path(__file__).with_name("moved.json")

OF_WORKLOAD = "workload."

Ours = dict[str, float | str]
"""Figure → ours as a number, how its runs ended, or whether its claim holds."""

Moved = dict[str, dict[str, float]]
"""Name of an input → figure → how many times as large ours is, or its effect against a baseline;
0: its runs end otherwise, or another thing becomes of its claim.
"""


@cache
def shipped_moves() -> dict[str, Moved]:
    """Experiment → what moves its figures, as `./loom reproduce --write` found it."""
    found: dict[str, Moved] = json.loads(FILE.read_text(encoding="utf-8")) if FILE.is_file() else {}
    return found


def write_moves(found: Mapping[str, Moved]) -> None:
    """Replace those of the experiments in `found`."""
    both = {**shipped_moves(), **found}
    FILE.write_text(json.dumps(both, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    shipped_moves.cache_clear()


def about(experiment: Experiment, figures: Set[str]) -> Experiment:
    """The experiment with the published values and claims of these figures alone."""
    published = tuple(value for value in experiment.published if value.id in figures)
    claims = tuple(claim for claim in experiment.claims if figures & set(claim.figures))
    return experiment.model_copy(update={"published": published, "claims": claims})


def moved_points(experiment: Experiment, points: Sequence[Point], one: Input) -> tuple[Point, ...]:
    """The points that figures are compared with, with the input multiplied; nothing else of them changes."""
    claims = [claim for claim in experiment.claims if claim.figures]
    compared = {point.digest for point in compared_points(experiment, points)}
    wanted = [
        point
        for point in points
        if point.digest in compared or any(is_at(experiment, point, claim.at) for claim in claims)
    ]
    found = []
    for point in wanted:
        if point.spec is not None:
            spec = moved(point.spec, one)
            found.append(point._replace(spec=spec, digest=spec_digest(spec)))
    return tuple(found)


def moved(spec: RunSpec, one: Input) -> RunSpec:
    """`spec` with the input's fields multiplied by its factor."""
    cluster = spec.cluster
    devices = tuple(
        _moved_device(device, one) if device.role == "worker" else device for device in cluster.devices
    )
    links = cluster.links
    if "links.bit_per_s" in one.fields:
        links = tuple(link.model_copy(update={"bit_per_s": link.bit_per_s * one.by}) for link in links)
    changed = cluster.model_validate(
        cluster.model_copy(update={"devices": devices, "links": links}).model_dump()
    )
    names = [field.removeprefix(OF_WORKLOAD) for field in one.fields if field.startswith(OF_WORKLOAD)]
    counts = {name: getattr(spec.workload, name) for name in names}
    workload = spec.workload.model_copy(
        update={name: round(count * one.by) for name, count in counts.items() if count}
    )
    return spec.model_copy(update={"cluster": changed, "workload": workload})


def _moved_device(device: DeviceSpec, one: Input) -> DeviceSpec:
    update: dict[str, object] = {
        field: getattr(device, field) * one.by for field in one.fields if "." not in field
    }
    if "flop_per_s" in one.fields:
        update["family_rates"] = tuple(
            rate.model_copy(update={"flop_per_s": rate.flop_per_s * one.by}) for rate in device.family_rates
        )
    return device.model_copy(update=update)


def ours_of(experiment: Experiment, rows: Sequence[Row]) -> Ours:
    """Ours of every figure: a value, of a relation its distance from the baseline; how runs ended; or what
    becomes of a claim.
    """
    rows = [row for row in rows if row.world == "predicted"]
    neutral = {value.id: NEUTRAL.get(value.relation, 0.0) for value in experiment.published}
    found: Ours = {}
    for row in compare_published(experiment, rows):
        ended = ", ".join(sorted(set(row.outcomes)))
        found[row.id] = ended if row.ours is None else row.ours - neutral[row.id]
    judged = {one.name: one.verdict for one in verdicts(experiment, rows)}
    for claim in experiment.claims:
        for figure in claim.figures:
            found[figure] = judged[claim.name]
            if isinstance(claim, Within) and claim.relation == "value":
                matching = chosen(experiment, cells(experiment, rows, claim), claim.at)
                means = [cell.mean for cell in matching if cell.mean is not None]
                found[figure] = statistics.fmean(means) if means else "no value"
    return found


def moves(before: Ours, after: Ours) -> dict[str, float]:
    """How many times as large ours is afterwards, less than 0 where an effect changes sides; 0 where it ends
    otherwise.
    """
    found = {}
    for figure, ours in before.items():
        now = after.get(figure)
        if isinstance(ours, str) or isinstance(now, str):
            found[figure] = 1.0 if ours == now else 0.0
        elif now is not None and ours:
            found[figure] = round(now / ours, 4)
    return found
