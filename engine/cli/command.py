"""`Command`, a sub-command of `./loom`, and `Environment`, the clusters and presets that commands use."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import NamedTuple

from engine.domain.cluster import ClusterSpec, DeviceSpec
from engine.domain.showcase import Showcase
from engine.domain.spec import RunSpec
from engine.experiments.execution.point import Emulation


class Trials(NamedTuple):
    """What came of many trials: rows of a table, and the problems that were found and printed."""

    rows: tuple[tuple[str, ...], ...]
    problems: tuple[str, ...]


class Environment(NamedTuple):
    """Functions that the engine needs and may not import: they give clusters, device presets and
    showcases.
    """

    load_cluster: Callable[[str], ClusterSpec]
    """A cluster by name or path of a file; raises `SpecError`."""

    cluster_names: Callable[[], tuple[str, ...]]
    presets: Callable[[], tuple[DeviceSpec, ...]]
    with_profile: Callable[[RunSpec], RunSpec] = lambda spec: spec
    """A run with the times of this machine, where it needs them and `loom calibrate` has measured them."""
    showcases: Callable[[], tuple[Showcase, ...]] = tuple
    emulation: Callable[[], Emulation] | None = None
    """How the points of an experiment are emulated; None where that cannot be done."""
    service_trials: Callable[[int, int, int, str], Trials] | None = None
    """Seed, first trial, number of trials, kind of database: trials of the server under faults; None where
    there is no server.
    """
    service_load: Callable[[], Trials] | None = None
    """Measures the server under load; None where there is no server."""
    service_machines: Callable[[], Trials] | None = None
    """Runs of a server with workers on two machines; None where there is no server."""
    browser_load: Callable[[], Trials] | None = None
    """Measures the pages in a real browser; None where there is no server."""
    serving_load: Callable[[], Trials] | None = None
    """Measures a run that serves with a load generator; None where there is no server."""

    first_run: Callable[[int], tuple[tuple[str, ...], ...]] | None = None
    """Measures the way from a clone to the first token, as often as asked; None where there is no server."""


class Command(NamedTuple):
    """One sub-command. `run` returns the exit status; `args.environment` is the `Environment`.

    It may raise any `EdgeLoomError`: `main` prints its message and exits with its status.
    """

    name: str
    help: str
    add_arguments: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int]
