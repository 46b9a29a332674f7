"""The worlds that a run can be carried out in: the one list of their names, from files to the page."""

from __future__ import annotations

from typing import Literal, get_args

World = Literal["predicted", "calculated", "emulated", "native", "nodes"]
"""Where the figures of a run come from.

predicted    the run is played on shapes, in virtual time; nothing is computed or sent
calculated   times are predicted, but every tensor is computed, in one process: tokens, and all that depends
             on data (a lossy method's error, the heads it leaves out), are real
emulated     processes compute and send over shaped links, paced to the devices of the cluster
native       the same without pacing: operations take the time that they take on this machine
nodes        the same on the boards that the devices are bound to: their cores, and the network between them
"""

WORLDS: tuple[World, ...] = get_args(World)
"""From the quickest to the slowest."""

MEASURED: tuple[World, ...] = ("emulated", "native", "nodes")
"""Worlds whose times are measured; in the others they are predicted."""
