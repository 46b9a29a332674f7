"""The experiments that come with EdgeLoom, and what the reproductions of the papers come to."""

from __future__ import annotations

from functools import cache, lru_cache

from engine.domain.experiment import Experiment
from engine.experiments.design.shipped_files import load, shipped_names
from engine.reproductions import shipped as papers
from engine.reproductions import summary
from engine.reproductions.summary import Reproductions
from engine.reproductions.verdicts import FigureVerdict
from webapp.experiments.schemas import ShippedOut


def shipped() -> list[ShippedOut]:
    """The shipped experiments: those to start from, then those of the papers."""
    return [*(about(load(name)) for name in shipped_names()), *map(about, papers.experiments())]


def about(experiment: Experiment) -> ShippedOut:
    return ShippedOut(
        name=experiment.name,
        title=experiment.title,
        description=experiment.description,
        paper=experiment.paper,
        num_points=experiment.num_candidates,
        experiment=experiment,
    )


@cache
def reproductions() -> Reproductions:
    """The summary of the reproductions, from shipped files, which do not change while this process runs."""
    return summary.reproductions()


@lru_cache(maxsize=64)
def verdicts(name: str) -> list[FigureVerdict]:
    """The verdicts of a shipped reproduction. Raises `SpecError` for an unknown name."""
    return list(summary.verdicts_of(name))
