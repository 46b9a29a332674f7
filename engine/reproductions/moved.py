"""Runs with an input moved, and how much ours moves with it: what follows from an input confirms nothing."""

from __future__ import annotations

import json
import statistics
from collections.abc import Mapping, Sequence, Set
from functools import cache, reduce
from pathlib import Path
from typing import NamedTuple

from engine.domain.claim import BreakEven, Claim, Compared, Within
from engine.domain.cluster import DeviceSpec
from engine.domain.experiment import Experiment
from engine.domain.quantity import Quantity
from engine.domain.spec import RunSpec, spec_digest
from engine.experiments.design.expand import Point
from engine.experiments.results.claims import NEUTRAL, values_of, verdicts
from engine.experiments.results.published import compare_published
from engine.experiments.results.rows import Row
from engine.reproductions.compared import compared_points, is_at
from engine.reproductions.declared import Input, Move
from engine.reproductions.states import SAME

FILE = Path(__file__).with_name("moved.json")

OF_WORKLOAD = "workload."


class Found(NamedTuple):
    """Ours of one figure: how its runs ended or what becomes of its claim, and its number, if it has one."""

    outcome: str
    number: float | None = None


Ours = dict[str, Found]
"""Figure → ours."""

Moved = dict[str, dict[str, float]]
"""Name of what is moved, of a `Move` → figure → how many times as large ours is, or its effect against a
baseline; 0: its runs end otherwise, or another thing becomes of its claim.
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


def moved_points(experiment: Experiment, points: Sequence[Point], move: Move) -> tuple[Point, ...]:
    """The points that figures are compared with, with the inputs multiplied; nothing else of them changes."""
    compared = {point.digest for point in compared_points(experiment, points)}
    for claim in experiment.claims:
        if claim.figures:
            compared |= _digests_of(experiment, points, claim)
    found = []
    for point in points:
        if point.digest in compared and point.spec is not None:
            spec = reduce(moved, move.inputs, point.spec)
            found.append(point._replace(spec=spec, digest=spec_digest(spec)))
    return tuple(found)


def _digests_of(experiment: Experiment, points: Sequence[Point], claim: Claim) -> set[str]:
    """Those of the points that a claim is about: both sides of a comparison, baselines of a relation."""
    sides: set[str] = {*claim.a, *claim.b} if isinstance(claim, Compared | BreakEven) else set()
    at = {name: value for name, value in claim.at.items() if name not in sides}
    about_it = [point for point in points if is_at(experiment, point, at)]
    digests = {point.digest for point in about_it}
    base = claim.relative_to if isinstance(claim, Quantity) else {}
    for baseline in ({**point.coordinates, **base} for point in about_it if base):
        digests |= {point.digest for point in points if is_at(experiment, point, baseline)}
    return digests


def moved(spec: RunSpec, one: Input) -> RunSpec:
    """`spec` with the input's fields multiplied by its factor, if it is in runs of this method."""
    if one.strategies and spec.strategy not in one.strategies:
        return spec
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
    model = spec.model
    if "model.weight_bits" in one.fields:
        model = model.model_copy(update={"weight_bits": model.weight_bits * one.by})
    return spec.model_copy(update={"cluster": changed, "workload": workload, "model": model})


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
    """Ours of every figure; the number of a relation is its distance from the baseline."""
    rows = [row for row in rows if row.world == "predicted"]
    neutral = {value.id: NEUTRAL.get(value.relation, 0.0) for value in experiment.published}
    found: Ours = {}
    for row in compare_published(experiment, rows):
        ended = ", ".join(sorted(set(row.outcomes)))
        found[row.id] = Found(ended, None if row.ours is None else _effect(row.ours, neutral[row.id]))
    judged = {one.name: one.verdict for one in verdicts(experiment, rows)}
    for claim in experiment.claims:
        values = values_of(experiment, rows, claim)
        neutral_of = NEUTRAL.get(claim.relation, 0.0) if isinstance(claim, Within) else 0.0
        number = _effect(statistics.fmean(values), neutral_of) if values else None
        found |= dict.fromkeys(claim.figures, Found(judged[claim.name], number))
    return found


def _effect(ours: float, neutral: float) -> float:
    """Ours, or its distance from a baseline; 0 for one that is as its baseline but for rounding."""
    effect = ours - neutral
    return 0.0 if neutral and abs(effect) < SAME else effect


def moves(before: Ours, after: Ours) -> dict[str, float]:
    """How many times as large ours is afterwards, less than 0 where an effect changes sides; 0 where it ends
    otherwise, another thing becomes of its claim, or there is an effect on one side alone.
    """
    found = {}
    for figure, ours in before.items():
        now = after.get(figure)
        if now is None:
            continue
        if ours.outcome != now.outcome or _kind(ours.number) != _kind(now.number):
            found[figure] = 0.0
        else:
            found[figure] = round(now.number / ours.number, 4) if ours.number and now.number else 1.0
    return found


def _kind(number: float | None) -> str:
    return "none" if number is None else "some" if number else "zero"
