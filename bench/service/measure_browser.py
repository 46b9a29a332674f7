"""The pages in a real browser, opened by `bench/service/browser.py`: measured beside asked."""

from __future__ import annotations

from bench.tables.rows import Table
from engine.cli.command import Environment
from engine.domain.errors import SpecError


def measure_browser(environment: Environment) -> Table:
    """Raises `SpecError` where there is no server."""
    if environment.browser_load is None:
        raise SpecError("The benchmark browser needs the server: run ./loom bench in a checkout of EdgeLoom.")
    title = (
        "Chromium (headless, no graphics card) beside server and database on one machine; the live run is "
        "equal-6 with demo-lm and megatron"
    )
    return Table(title, ("what", "measured", "asked"), environment.browser_load().rows)
