"""What an experiment says of an emulation that is not valid. Its run has been repeated already where that may
help (`engine/runs/attempts.py`).
"""

from __future__ import annotations

from engine.domain.spec import RunSpec
from engine.experiments.results.rows import Result


def told(result: Result, spec: RunSpec) -> Result:
    """The result with a sentence if it is not valid."""
    if result.metrics.get("valid") != 0:
        return result
    dilation, advised = result.metrics.get("dilation"), result.metrics.get("advised_dilation")
    at = f" at dilation {dilation:g}" if dilation else ""
    asked = "" if spec.dilation == "auto" else ", which the experiment asks for, so it is not repeated"
    remedy = f" Its run recommends {advised:g}." if advised else ""
    sentence = f"Not valid{at}{asked}: it is left out of means.{remedy}"
    return result.model_copy(update={"sentence": f"{result.sentence} {sentence}".strip()})
