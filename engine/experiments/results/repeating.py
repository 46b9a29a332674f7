"""When an emulation that is not valid is repeated, at which dilation, and what is said of it in the end."""

from __future__ import annotations

from engine.domain.spec import RunSpec
from engine.experiments.results.rows import Result

MOST_REPEATS = 2


def next_dilation(spec: RunSpec, advised: float | None, repeats: int) -> float | None:
    """The dilation at which to repeat a run that is not valid, after so many repeats; None: not again.

    Only where the program chooses the dilation: one that a person gave belongs to the experiment.
    """
    return advised if spec.dilation == "auto" and repeats < MOST_REPEATS else None


def told(result: Result, spec: RunSpec, repeats: int) -> Result:
    """The result that stays after so many repeats. One that is not valid says so, and why it is not
    repeated.
    """
    if result.metrics.get("valid") != 0:
        return result
    dilation, advised = result.metrics.get("dilation"), result.metrics.get("advised_dilation")
    at = f" at dilation {dilation:g}" if dilation else ""
    after = f" after {repeats} {'repeat' if repeats == 1 else 'repeats'}" if repeats else ""
    asked = "" if spec.dilation == "auto" else ", which the experiment asks for, so it is not repeated"
    remedy = f" Its run recommends {advised:g}." if advised else ""
    sentence = f"Not valid{at}{after}{asked}: it is left out of means.{remedy}"
    return result.model_copy(update={"sentence": f"{result.sentence} {sentence}".strip()})
