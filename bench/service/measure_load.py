"""The server under load, which `bench/service/load.py` makes, and with two machines (`machines.py` there)."""

from __future__ import annotations

from bench.tables.rows import Table
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


def measure_machines(environment: Environment) -> Table:
    """Raises `SpecError` where there is no server, `RunError` if something was wrong."""
    if environment.service_machines is None:
        raise SpecError("The benchmark machines needs the server: run ./loom bench in a checkout.")
    found = environment.service_machines()
    if found.problems:
        raise RunError("With two machines something went wrong: " + "; ".join(found.problems[:5]) + ".")
    title = "A server and two workers in network namespaces, PostgreSQL and Redis with passwords"
    return Table(title, ("what", "result"), found.rows)
