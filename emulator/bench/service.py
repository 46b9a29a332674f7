"""The server under load, which `webapp/trials/load.py` makes: a table of times of requests and events."""

from __future__ import annotations

from emulator.bench.rows import Table
from engine.cli.command import Environment
from engine.domain.errors import RunError, SpecError


def measure_service(environment: Environment) -> Table:
    """Raises `SpecError` where there is no server, `RunError` if something was lost."""
    if environment.service_load is None:
        raise SpecError("The benchmark load needs the server: run ./loom bench in a checkout of EdgeLoom.")
    measured = environment.service_load()
    if measured.problems:
        raise RunError("Under load something went wrong: " + "; ".join(measured.problems[:5]) + ".")
    title = (
        "200 people watch one live run, ten start five runs each and look at lists; 10,000 runs are stored"
    )
    return Table(title, ("what", "times", "median", "95 %"), measured.rows)
