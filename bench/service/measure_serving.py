"""A run that serves, asked by GuideLLM (`bench/service/serving.py`): its figures beside those of the
report.
"""

from __future__ import annotations

from bench.tables.rows import Table
from engine.cli.command import Environment
from engine.domain.errors import RunError, SpecError


def measure_serving(environment: Environment) -> Table:
    """Raises `SpecError` where there is no server, `RunError` if the figures do not agree."""
    if environment.serving_load is None:
        raise SpecError("The benchmark serving needs the server: run ./loom bench in a checkout of EdgeLoom.")
    measured = environment.serving_load()
    if measured.problems:
        raise RunError("The figures do not agree: " + "; ".join(measured.problems[:5]) + ".")
    title = (
        "lab-3 serves demo-lm with megatron, answers of 16 tokens. In each cell GuideLLM's figure, and after "
        "the slash that of the run's report times the dilation; medians where nothing else is said"
    )
    columns = ("profile", "requests", "requests/s", "first token", "95 %", "per token", "request")
    return Table(title, columns, measured.rows)
