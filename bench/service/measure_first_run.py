"""From a clone to the first token, which `bench/service/first_run.py` drives."""

from __future__ import annotations

from bench.tables.rows import Table
from engine.cli.command import Environment
from engine.domain.errors import SpecError


def measure_first_run(environment: Environment, repeats: int) -> Table:
    """Raises `SpecError` where there is no server."""
    if environment.first_run is None:
        raise SpecError("The benchmark first-run needs the server: run ./loom bench in a checkout.")
    title = f"From clone to first token with an empty HOME, {repeats} times, download included"
    return Table(title, ("what", "median", "slowest", "asked"), environment.first_run(repeats))
