"""How large an experiment may be on the server, by arithmetic before any of its points is built."""

from __future__ import annotations

from itertools import chain
from typing import Any

from engine.domain.cluster import ClusterSpec
from engine.domain.errors import SpecError
from engine.domain.experiment import Experiment
from webapp.base import budgets
from webapp.experiments.design.sources import cluster

FEW_POINTS = 10
"""Points of an experiment that take as long to expand as one run to predict."""
COPIES = "cluster.copies["


def check(experiment: Experiment) -> None:
    """Check the numbers of points, devices, settings, figures and conditions; raises `SpecError` for too
    many.
    """
    claims = len(experiment.claims)
    budgets.check_experiment(
        budgets.ExperimentSize(
            points=experiment.num_candidates * len(experiment.worlds),
            devices=num_devices(experiment),
            settings=num_settings(experiment),
            views=len(experiment.figures) + len(experiment.tables) + claims,
            values=len(experiment.published) + len(experiment.assumptions),
        )
    )
    budgets.check_conditions(
        [
            *experiment.where,
            *chain(*(figure.where for figure in experiment.figures)),
            *chain(*(table.where for table in experiment.tables)),
        ]
    )


def is_large(experiment: Experiment) -> bool:
    """Whether to expand it takes more than a moment."""
    return budgets.is_large(num_devices(experiment) * experiment.num_candidates // FEW_POINTS)


def num_settings(experiment: Experiment) -> int:
    """Paths that a point sets at most."""
    return sum(
        len(factor.paths) + max(len(level.set) for level in factor.values) for factor in experiment.factors
    )


def num_devices(experiment: Experiment) -> int:
    """Devices of the largest cluster that a point can have: an upper bound."""
    settings = [
        (path, value)
        for factor in experiment.factors
        for level in factor.values
        for path, value in [*((path, level.value) for path in factor.paths), *level.set.items()]
    ]
    settings += [
        (path, point[factor.name])
        for point in experiment.points
        for factor in experiment.factors
        for path in factor.paths
    ]
    clusters = [experiment.base.get("cluster"), *(value for path, value in settings if path == "cluster")]
    copies: dict[str, int] = {}
    for path, value in settings:
        if path.startswith(COPIES) and isinstance(value, int):
            copies[path] = max(copies.get(path, 0), value)
    return max(map(devices_of, clusters)) + sum(copies.values())


def devices_of(given: Any) -> int:
    """Devices of a cluster by name or written out; 0 for what is neither, which is refused later with its
    reason.
    """
    if isinstance(given, ClusterSpec):
        return len(given.devices)
    if isinstance(given, dict):
        devices = given.get("devices")
        return len(devices) if isinstance(devices, list) else 0
    try:
        return len(cluster(given).devices) if isinstance(given, str) else 0
    except SpecError:
        return 0
