"""`Command`, a sub-command of `./loom`, and `Environment`, the clusters and presets that commands use."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple

from engine.domain.cluster import ClusterSpec, DeviceSpec
from engine.domain.errors import SpecError
from engine.domain.scenario import Scenario
from engine.domain.showcase import Showcase
from engine.domain.spec import RunSpec

if TYPE_CHECKING:  # most commands need neither
    from engine.experiments.execution.point import Emulation
    from engine.plugins.installed import Unusable


def no_showcases(name: str) -> Showcase:
    raise SpecError(f"no showcase {name}: there are none here.")


def no_scenarios(name: str) -> Scenario:
    from engine.experiments.design import sources

    return sources.no_scenarios(name)


class Environment(NamedTuple):
    """Functions that the engine needs and may not import: they give clusters, device presets,
    scenarios and showcases.
    """

    load_cluster: Callable[[str], ClusterSpec]
    """A cluster by name or path of a file; raises `SpecError`."""

    cluster_names: Callable[[], tuple[str, ...]]
    presets: Callable[[], tuple[DeviceSpec, ...]]
    with_profile: Callable[[RunSpec], RunSpec] = lambda spec: spec
    """A run with the times of this machine, where it needs them and `loom calibrate` has measured them."""
    showcases: Callable[[], tuple[Showcase, ...]] = tuple
    showcase: Callable[[str], Showcase] = no_showcases
    """A showcase by its name; raises `SpecError`."""
    scenario: Callable[[str], Scenario] = no_scenarios
    """An example by its name; raises `SpecError`."""
    emulation: Callable[[], Emulation] | None = None
    """How the points of an experiment are emulated; None where that cannot be done."""
    cluster_text: Callable[[ClusterSpec], str] = ClusterSpec.model_dump_json
    """A cluster as the text of a file."""
    left_out: Callable[[], tuple[Unusable, ...]] = tuple
    """What installed packages bring beside methods and figures, and cannot be used."""


class Command(NamedTuple):
    """One sub-command. `run` returns the exit status; `args.environment` is the `Environment`.

    It may raise any `EdgeLoomError`: `main` prints its message and exits with its status.
    """

    name: str
    help: str
    add_arguments: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int]

    @classmethod
    def of(cls, name: str, help: str, module: str) -> Command:
        """The command whose functions `add_arguments` and `run` are in a module, which is imported when that
        command is asked for: to import those of all takes longer than most of them.
        """
        return cls(
            name,
            help,
            lambda parser: import_module(module).add_arguments(parser),
            lambda args: int(import_module(module).run(args)),
        )
