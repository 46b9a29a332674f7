"""The worlds that a run can be carried out in: the one list of their names, from files to the page."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal, get_args

from pydantic import BeforeValidator

_Name = Literal["predicted", "calculated", "emulated", "native"]


def present_world(name: Any) -> Any:
    """`name`, or what the world of that name is called now: stored results, experiments and reports have
    `simulated` where present ones have `predicted`.
    """
    return "predicted" if name == "simulated" else name


def with_present_world(coordinates: Any) -> Any:
    """Coordinates of a stored experiment, among which may be a world or a list of worlds."""
    if not isinstance(coordinates, Mapping) or "world" not in coordinates:
        return coordinates
    at = coordinates["world"]
    now = [present_world(one) for one in at] if isinstance(at, list | tuple) else present_world(at)
    return {**coordinates, "world": now}


def with_present_world_in_text(condition: Any) -> Any:
    """A condition of a stored experiment, such as `world == "simulated"`."""
    if not isinstance(condition, str) or "world" not in condition:
        return condition
    return re.sub(r"""(["'])simulated\1""", r"\1predicted\1", condition)


World = Annotated[_Name, BeforeValidator(present_world)]
"""Where the figures of a run come from.

predicted    the run is played on shapes, in virtual time; nothing is computed or sent
calculated   times are predicted, but every tensor is computed, in one process: tokens, and all that depends
             on data (a lossy method's error, the heads it leaves out), are real
emulated     processes compute and send over shaped links, paced to the devices of the cluster
native       the same without pacing: operations take the time that they take on this machine
"""

WORLDS: tuple[World, ...] = get_args(_Name)
"""From the quickest to the slowest."""

MEASURED: tuple[World, ...] = ("emulated", "native")
"""Worlds whose times are measured; in the others they are predicted."""
