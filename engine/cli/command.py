"""What a command of `./loom` is, and what every command is given."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import NamedTuple

from engine.domain.cluster import ClusterSpec, DeviceSpec


class Environment(NamedTuple):
    """What the engine may not import and yet needs: the clusters and device presets that exist."""

    load_cluster: Callable[[str], ClusterSpec]
    """A cluster by name or TOML path; raises `SpecError`."""

    cluster_names: Callable[[], tuple[str, ...]]
    presets: Callable[[], tuple[DeviceSpec, ...]]


class Command(NamedTuple):
    """One sub-command. `run` returns the exit status and finds the `Environment` in `args.environment`.

    It may raise any `EdgeLoomError`: `main` prints its sentence and exits with its status.
    """

    name: str
    help: str
    add_arguments: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int]
