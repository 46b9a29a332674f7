"""The process of one emulation, init of its own namespaces (`fork_server.py` forks it).

It reads a RunSpec from a socket, runs it over a `MininetNetwork`, sends events in batches and receives
live commands. It forks devices and therefore has no threads: it uses the socket only when the engine calls
`watch`, `next_command` or `should_stop`.
"""

from __future__ import annotations

import math
import os
import socket
import sys
import time
from collections import deque
from collections.abc import Collection
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from emulator.host.enter import MOST_PROCESSES
from emulator.host.priority import children_in_real_time
from emulator.session.boards import BoardsNetwork
from emulator.session.limits import READY_VARIABLE, number_from
from emulator.session.turns import give_back_inherited, inherited
from emulator.session.wire import JsonLines, error_to_json
from engine import confined
from engine.domain.errors import EdgeLoomError, RunError
from engine.domain.events import (
    ChangeRefused,
    Event,
    Logged,
    PlanMade,
    ReportMade,
    RequestRefused,
    StateChanged,
    is_only_compared,
    to_json,
)
from engine.domain.network import Network
from engine.domain.scenario import LiveCommand
from engine.domain.spec import RunSpec
from engine.models.reference import process as references
from engine.runs.children import Child, fork_device
from engine.runs.execute import execute
from engine.runs.holds import Most
from engine.runs.made_plan import MadePlan
from engine.runs.readiness import READY_S
from engine.strategies.registry import add_source
from engine.worlds.real.device_process import Assignment

if TYPE_CHECKING:  # Mininet takes a while to import, and is not needed until there is a plan
    from emulator.network.mininet_network import MininetNetwork

BATCH_S = 0.04
NEEDED_LATE = (
    "emulator.network.mininet_network",
    "engine.ops.torch_kernels.linear",
    "engine.worlds.real.device",
    "engine.worlds.real.native",
    "numpy.random",
    "safetensors.torch",
)
"""What a run imports after its plan, and what would else be imported by each of its devices."""

NEEDED_LAST = ("torch.distributed.tensor", *references.LIBRARY_MODULES)
"""What the comparison at the end imports, by parts that take a second each."""

SENT_AT_ONCE = (StateChanged, PlanMade, Logged, ChangeRefused, RequestRefused, ReportMade)


class Session:
    """The functions that the engine calls during a run: they read and write the socket."""

    def __init__(self, lines: JsonLines):
        self.lines = lines
        self.events: list[Event] = []
        self.flushed_s = time.monotonic()
        self.commands: deque[LiveCommand] = deque()
        self.stopping = False
        self.paced = False
        self.network: MininetNetwork | BoardsNetwork | None = None

    def run(self) -> None:
        first = self._first()
        spec = RunSpec.parse(first["spec"], "run")
        if spec.method is not None and first["source"]:
            add_source(first["source"], spec.method)
        self.paced = spec.is_paced
        made = MadePlan.parse(first["plan"], "plan") if first.get("plan") else None
        execute(
            spec,
            self.open_network,
            self.watch,
            self.next_command,
            self.should_stop,
            self.prioritise_devices,
            number_from(READY_VARIABLE, READY_S),
            Most(
                first.get("memory_bytes", math.inf),
                MOST_PROCESSES,
                first.get("start_s", math.inf),
                len(os.sched_getaffinity(0)),
            ),
            made,
            self.start_on_board if self.lines.sockets else fork_device,
        )
        self.flush()

    def start_on_board(self, rank: int, name: str, given: Assignment, others: Collection[Child]) -> Child:
        assert isinstance(self.network, BoardsNetwork), "it is opened before"
        return self.network.start(rank, name, given, others)

    def open_network(self, spec: RunSpec, dilation: float) -> Network:
        if spec.on_nodes:
            self.network = BoardsNetwork(spec, self.lines.sockets)
            return self.network
        from emulator.network.mininet_network import MininetNetwork

        self.network = MininetNetwork(spec.cluster, dilation, changes=spec.scenario.changes)
        return self.network

    def watch(self, event: Event) -> None:
        if is_only_compared(event):
            give_back_inherited()
        self.events.append(event)
        if isinstance(event, SENT_AT_ONCE):
            self.flush()
        self._flush_if_due()

    def prioritise_devices(self) -> None:
        """Give the device processes real-time priority. An unpaced run would take the whole machine."""
        if self.paced and self.network is not None and not isinstance(self.network, BoardsNetwork):
            children_in_real_time(but=self.network.shells | references.pids() | confined.pids())

    def next_command(self) -> LiveCommand | None:
        self._flush_if_due()
        self._receive_commands()
        return self.commands.popleft() if self.commands else None

    def should_stop(self) -> bool:
        self._receive_commands()
        return self.stopping

    def flush(self) -> None:
        if self.events:
            self.lines.send({"events": to_json(self.events)})
        self.events = []
        self.flushed_s = time.monotonic()

    def _flush_if_due(self) -> None:
        if self.events and time.monotonic() - self.flushed_s >= BATCH_S:
            self.flush()

    def _receive_commands(self) -> None:
        for command in self.lines.receive(0):
            if command.get("kind") == "stop":
                self.stopping = True
                self.lines.send({"stopping": True})
            else:
                self.commands.append(command)
        if self.lines.closed:  # the caller has ended: end the run
            os._exit(1)

    def _first(self) -> dict[str, Any]:
        while not self.lines.closed:
            messages = self.lines.receive(60.0)
            if messages:
                return messages[0]
        os._exit(1)


def preload() -> None:
    """Import what a run needs once there is a plan. No thread is left, so the process can be forked."""
    import torch

    torch.set_num_threads(1)
    os.environ.update(references.LIBRARY)
    for name in NEEDED_LATE:
        import_module(name)


def _first_to_go() -> None:
    """Let the kernel end emulations before servers and databases, should the whole machine lack memory."""
    Path("/proc/self/oom_score_adj").write_text("500")


def main(descriptor: int) -> None:
    lines = JsonLines(socket.socket(fileno=descriptor))
    session = Session(lines)
    status = 0
    try:
        _first_to_go()
        confined.start_server()
        references.fork_references(inherited())
        session.run()
    except EdgeLoomError as error:
        session.flush()
        lines.send({"error": error_to_json(error)})
        status = error.exit_status
    except Exception as error:  # the owner gets the sentence, its log the details
        session.flush()
        sys.excepthook(type(error), error, error.__traceback__)
        trouble = RunError(f"The emulation failed: {type(error).__name__}: {error}")
        lines.send({"error": error_to_json(trouble)})
        status = 1
    sys.stderr.flush()
    os._exit(status)  # at once: the death of this init ends whatever still runs inside
