"""MethodReport: what a method did in a run, in the method's own terms, as JSON that needs no page to read.

Every method that does more than its plan says has a subclass with a `kind` of its own, made by
`Strategy.summarise` from the run's plans and trace, predicted or real.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar, NamedTuple, TypeVar

from engine.domain.kinded import Kinded
from engine.domain.plan import Layout, Plan

OneLayout = TypeVar("OneLayout", bound=Layout)


class MethodReport(Kinded):
    """Base of the reports of all methods, what `summarise` returns: JSON, shown as the fields of a layout
    are. `family` is what messages call such a value.
    """

    family: ClassVar[str] = "method report"

    def lines(self) -> tuple[str, ...]:
        """What the command line prints: short sentences or rows."""
        return ()


class PlanAt(NamedTuple):
    """A plan, and the virtual time from which the run used it."""

    time_s: float
    plan: Plan


def layouts_of(plans: Sequence[PlanAt], kind: type[OneLayout]) -> Iterator[tuple[float, OneLayout]]:
    """The layouts of this kind, each with the virtual time from which the run used it."""
    for at in plans:
        if isinstance(at.plan.layout, kind):
            yield at.time_s, at.plan.layout
