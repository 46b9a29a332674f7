"""The experiments that come with EdgeLoom."""

from __future__ import annotations

from engine.domain.experiment import Experiment
from engine.experiments.shipped_files import load, shipped_names
from webapp.experiments.schemas import ShippedOut


def shipped() -> list[ShippedOut]:
    return [about(load(name)) for name in shipped_names()]


def about(experiment: Experiment) -> ShippedOut:
    return ShippedOut(
        name=experiment.name,
        title=experiment.title,
        description=experiment.description,
        paper=experiment.paper,
        num_points=experiment.num_candidates,
        experiment=experiment,
    )
