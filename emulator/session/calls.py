"""Calls one function in a process with private namespaces, as emulations have them.

Calibration, benchmarks and tests use it. Arguments and result travel as JSON.
"""

from __future__ import annotations

import importlib
import os
import socket
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from emulator.host.places import queue_name, state_directory
from emulator.session.isolation import Isolated
from emulator.session.turns import Turn, Wait, turn
from emulator.session.wire import JsonLines, error_from_json, error_to_json
from engine.domain.errors import EdgeLoomError, HostError

CHECK_S = 0.2
"""Seconds between two calls of `check`."""


def call(function: Callable[..., Any], *arguments: Any, writes: Iterable[Path] = ()) -> Any:
    """The result of a module's function, called in new namespaces when it is this call's turn on the host.

    It may write the directories `writes`. Raises the function's `EdgeLoomError`.
    """

    def waiting(wait: Wait) -> None:
        sys.stderr.write(f"waiting: {wait}\n")

    with turn(queue_name(), waiting, purpose="measurement") as mine:
        return call_in(mine, function, *arguments, writes=writes)


def call_in(
    mine: Turn,
    function: Callable[..., Any],
    *arguments: Any,
    writes: Iterable[Path] = (),
    check: Callable[[], None] = lambda: None,
) -> Any:
    """The same in a turn that the caller holds. `check` is called several times a second and may raise, which
    ends the process.
    """
    with Isolated(__name__, state_directory(), mine, writes=writes) as session:
        lines = JsonLines(session.sock)
        lines.send({"module": function.__module__, "name": function.__name__, "arguments": arguments})
        while not lines.closed:
            check()
            for message in lines.receive(CHECK_S):
                if "error" in message:
                    raise error_from_json(message["error"])
                return message["result"]
        raise HostError(f"{function.__name__} ended without a result: {session.last_words()}.")


def preload() -> None:
    """Import what functions that are called in a process of many build: networks."""
    importlib.import_module("emulator.network.mininet_network")


def main(descriptor: int) -> None:
    lines = JsonLines(socket.socket(fileno=descriptor))
    messages: list[dict[str, Any]] = []
    while not messages and not lines.closed:
        messages = lines.receive(60.0)
    if not messages:  # the caller has ended
        return
    try:
        function = getattr(importlib.import_module(messages[0]["module"]), messages[0]["name"])
        lines.send({"result": function(*messages[0]["arguments"])})
    except EdgeLoomError as error:
        lines.send({"error": error_to_json(error)})
    os._exit(0)
