"""Repeats an emulation whose times are not valid with a larger dilation."""

from __future__ import annotations

from collections.abc import Callable

from engine.domain.report import RunReport
from engine.domain.spec import RunSpec

ATTEMPTS = 3
"""Emulations of one run at most, the first one included."""

FACTOR = 2.0
"""How many times as large the dilation of another attempt is."""


def until_valid(run: Callable[[RunSpec], RunReport], spec: RunSpec) -> RunReport:
    """The report of `run`; where the dilation is chosen automatically and the times are not valid, that of
    another attempt with twice the dilation: this machine was busy, or slower than expected. The last report
    counts, also if it is not valid either.
    """
    report = run(spec)
    for _ in range(ATTEMPTS - 1):
        if spec.dilation != "auto" or report.fidelity.valid is not False:
            break
        report = run(spec.model_copy(update={"dilation": FACTOR * report.dilation}))
    return report
