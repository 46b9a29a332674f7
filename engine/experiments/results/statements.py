"""Checks what an experiment states, published values and claims, before any of its points is computed."""

from __future__ import annotations

from collections.abc import Iterator

from engine.domain.claim import BreakEven, Claim, Compared, First, Trend, Within
from engine.domain.errors import SpecError
from engine.domain.experiment import Experiment
from engine.domain.quantity import Quantity
from engine.experiments.results.cells import known_axis
from engine.experiments.results.published import value_in_metric_unit
from engine.experiments.results.units import in_unit, unit_of_quantity


def check_statements(experiment: Experiment) -> None:
    """Check published values and claims: metrics, factors and units must be known; raises `SpecError`."""
    for index, value in enumerate(experiment.published):
        try:
            value_in_metric_unit(value)
        except SpecError as error:
            raise SpecError(
                f"{experiment.name}, published[{index}]: {error}", [(f"published[{index}]", str(error))]
            ) from error
    for index, claim in enumerate(experiment.claims):
        try:
            _check_claim(experiment, claim)
        except SpecError as error:
            raise SpecError(
                f"{experiment.name}, claim {claim.name}: {error}", [(f"claims[{index}]", str(error))]
            ) from error


def _check_claim(experiment: Experiment, claim: Claim) -> None:
    if isinstance(claim, Quantity):
        unit = unit_of_quantity(claim)
        if isinstance(claim, Within):
            in_unit(1.0, claim.unit, unit)
    for field, name in _factors_of(claim):
        known_axis(experiment, name, field)


def _factors_of(claim: Claim) -> Iterator[tuple[str, str]]:
    """Every factor that the claim names, with the field that names it."""
    yield from (("at", name) for name in claim.at)
    if isinstance(claim, Quantity):
        yield from (("relative_to", name) for name in claim.relative_to)
    if isinstance(claim, Compared | BreakEven):
        yield from (("a", name) for name in claim.a)
        yield from (("b", name) for name in claim.b)
    if isinstance(claim, Trend | BreakEven):
        yield "along", claim.along
    if isinstance(claim, First):
        yield "of", claim.of
    if isinstance(claim, Within) and claim.best_of:
        yield "best_of", claim.best_of
