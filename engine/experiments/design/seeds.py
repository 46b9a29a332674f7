"""What a seed changes in the runs of an experiment, in words."""

from __future__ import annotations

from collections.abc import Iterable

from engine.domain.scenario import SetLoss
from engine.experiments.design.expand import Point


def seed_changes(points: Iterable[Point]) -> tuple[str, ...]:
    """What differs between repeats of a point, over all points; empty if repeats are the same run again."""
    found: dict[str, None] = {}
    for point in points:
        spec = point.spec
        if spec is None:
            continue
        if spec.workload.prompt is None and spec.workload.prompt_tokens:
            found["the random prompt"] = None
        if spec.workload.temperature:
            found["the drawn tokens"] = None
        if spec.workload.pattern == "poisson":
            found["when requests arrive"] = None
        if spec.model.vision is not None and spec.workload.image is None:
            found["the random picture"] = None
        if spec.weights.kind == "random":
            found["the random weights"] = None
        changes = [change for change in spec.scenario.changes if isinstance(change, SetLoss)]
        if changes or any(link.loss_frac or link.reverse_loss_frac for link in spec.cluster.links):
            found["which packets are lost"] = None
        if any(link.jitter_s for link in spec.cluster.links):
            found["the jitter of each packet"] = None
    return tuple(found)
