"""When an emulation that is not valid is repeated, and at which dilation."""

from __future__ import annotations

from engine.domain.spec import RunSpec

MOST_REPEATS = 2


def next_dilation(spec: RunSpec, advised: float | None, repeats: int) -> float | None:
    """The dilation at which to repeat a run that is not valid, after so many repeats; None: not again.

    Only where the program chooses the dilation: one that a person gave belongs to the experiment.
    """
    return advised if spec.dilation == "auto" and repeats < MOST_REPEATS else None


def repeated_text(advised: float | None, repeats: int, dilation: float | None) -> str:
    """What became of a run that is still not valid."""
    at = f" at dilation {dilation:g}" if dilation else ""
    after = f" after {repeats} {'repeat' if repeats == 1 else 'repeats'}" if repeats else ""
    remedy = f" Its run recommends {advised:g}." if advised else ""
    return f"Not valid{at}{after}: it is left out of means.{remedy}"
