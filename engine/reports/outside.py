"""Figures from outside EdgeLoom: installed packages declare them by entry points of `edgeloom.metrics`, each
a row of the table of figures, called as its entry point.
"""

from __future__ import annotations

import logging
import math
import re
from collections.abc import Callable, Collection, Sequence
from functools import cache
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

from engine.domain.errors import SpecError
from engine.domain.report import RunReport
from engine.domain.trace import Mark, Span
from engine.plugins.installed import METRIC, Installed, imported, installed, place_of
from engine.plugins.words import words_of
from engine.reports.metric import Metric

NAME = re.compile(r"[a-z][a-z0-9_]{0,30}")
log = logging.getLogger(__name__)


def installed_metrics(taken: Collection[str]) -> Installed[Metric]:
    """The installed figures that are active, and what is wrong with the others of these."""
    return installed(METRIC, taken, _of_entry_point)


def figures_of(
    report: RunReport, trace: Sequence[Span | Mark], metrics: Sequence[Metric]
) -> dict[str, float]:
    """The figures that need the trace, by name."""
    found = {one.name: one.traced(report, trace) for one in metrics if one.traced is not None}
    return {name: float(value) for name, value in found.items() if value is not None}


def _of_entry_point(point: EntryPoint, where: str) -> Metric:
    found = imported(point, where)
    if not isinstance(found, Metric):
        raise SpecError(f"{where}: expected an edgeloom.metric.Metric, got {found!r:.80}.")
    if found.name != point.name or not NAME.fullmatch(found.name):
        raise SpecError(
            f"{where}: its name is {found.name!r}: give entry point and figure one name, of small letters, "
            "digits and _."
        )
    tried = _tried(where, place_of(point.module))
    return found.model_copy(
        update={"compute": tried(found.compute), "traced": found.traced and tried(found.traced)}
    )


Compute = Callable[..., float | bool | None]


def _tried(where: str, place: Path | None) -> Callable[[Compute], Compute]:
    """Makes a computation that has no figure where it raises, and says so once in the log. Reports have no
    infinite numbers, and none that are no number.
    """

    @cache
    def tell(sentence: str) -> None:
        log.warning(sentence)

    def of(compute: Compute) -> Compute:
        def value(*given: Any) -> float | None:
            try:
                found = compute(*given)
                return None if found is None or not math.isfinite(found) else float(found)
            except Exception as error:
                tell(f"{where}: has no value: {words_of(error, place)}.")
                return None

        return value

    return of
