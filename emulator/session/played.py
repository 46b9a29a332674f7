"""The devices of a run on boards that are none: processes here that are what a board has, each as drawn."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager

from emulator.session.isolation import Isolated
from engine.domain.spec import RunSpec
from engine.runs.on_nodes import check_on_nodes

BOARD_PROCESS = "emulator.node.board_process"
"""What the room of a played device runs: with this machine's network, since boards connect to it, and with as
little else as a session has.
"""


@contextmanager
def with_played(
    spec: RunSpec, boards: Sequence[socket.socket], room: Callable[[], Isolated]
) -> Iterator[list[socket.socket]]:
    """Sockets that lead to the processes of all devices: those of `boards`, to which devices are bound, and
    between them those of devices that are played here, each in a `room`. Raises `SpecError`.
    """
    check_on_nodes(spec)
    bound = iter(boards)
    with ExitStack() as stack:
        yield [
            next(bound) if device.node else stack.enter_context(room()).sock
            for device in spec.cluster.devices
        ]
