"""`emulate`: runs a spec on an emulated network. Waits for its turn, starts an isolated session, relays
events and commands.
"""

from __future__ import annotations

import queue
import socket
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any

from emulator.calibration.known import with_profile
from emulator.host.leftovers import cleanup_stale
from emulator.host.memory import MemoryGroup
from emulator.host.places import queue_name, state_directory
from emulator.network.probe import probe
from emulator.session.isolation import Isolated, prepare
from emulator.session.limits import Guard, limits_here
from emulator.session.notes import notes
from emulator.session.played import BOARD_PROCESS, with_played
from emulator.session.turns import Turn, Wait, turn
from emulator.session.wire import JsonLines, error_from_json
from engine.domain.errors import Cancelled, RunError
from engine.domain.events import EVENTS, Event, ReportMade, StateChanged, is_only_compared
from engine.domain.report import RunReport
from engine.domain.scenario import LiveCommand
from engine.domain.spec import RunSpec
from engine.runs.made_plan import MadePlan
from engine.strategies.registry import folder_of, source_of

OnEvents = Callable[[list[Event]], None]

SERVER = "emulator.session.server"
TICK_S = 0.03
STOP_HEARD_S = 5.0
"""A session that does not say within so long that it has heard a stop is killed."""


def expect_emulations(many: bool = False) -> None:
    """Let the next emulations of this process start at once: what they need is imported now, beside it, and
    kept for some minutes; for `many` also what each uses at its end, while none goes on.
    """
    prepare(SERVER, many)


def emulate(
    spec: RunSpec,
    on_events: OnEvents,
    commands: queue.Queue[LiveCommand] | None = None,
    made: MadePlan | None = None,
    boards: AbstractContextManager[Sequence[socket.socket]] | None = None,
) -> RunReport:
    """Run `spec` on an emulated network; its report, which is also the last event. `made`: the plan that was
    made of it before, if any. `boards` gives sockets that lead to the boards that its devices are, in their
    order; devices that are none are played here.

    `on_events` gets batches of events in order; `commands` takes live changes and `{"kind": "stop"}`.
    Ctrl-C stops the run in order once, and at once when repeated. Raises `HostError` if this machine
    cannot, `SpecError`, `PlanError`, `Cancelled` if stopped before its session, `RunError` if the session
    dies or exceeds a limit (`limits.py`).
    """
    probe().require()
    asked: queue.Queue[LiveCommand] = queue.Queue() if commands is None else commands
    state = state_directory()
    cleanup_stale(state)

    def waiting(wait: Wait) -> None:
        on_events([StateChanged(state="queued", detail=str(wait), ahead=wait.ahead)])

    def give_up() -> None:
        if any(command.get("kind") == "stop" for command in _drain(asked)):
            raise Cancelled("Stopped before it began.")

    limits = limits_here()
    with (
        turn(queue_name(), waiting, give_up, beside_comparisons=spec.is_paced) as mine,
        MemoryGroup(limits.memory_bytes) as group,
        Isolated(SERVER, state, mine, group.procs, _directories_of(spec)) as session,
        boards or nullcontext(()) as of_boards,
        with_played(
            spec, of_boards, partial(Isolated, BOARD_PROCESS, state, mine, group.procs, own_network=False)
        )
        if spec.on_nodes
        else nullcontext(()) as sockets,
    ):
        client = _SessionClient(session, mine, on_events, asked, Guard(limits, group))
        return client.run(with_profile(spec), made, sockets)


def _directories_of(spec: RunSpec) -> tuple[Path, ...]:
    """What the session reads besides its program: weights, and the code of a method from outside."""
    weights, method = (spec.weights.directory, spec.draft_weights.directory), folder_of(spec.strategy)
    code = () if method is None else (method if method.is_dir() else method.parent,)
    return (*(Path(directory) for directory in weights if directory), *code)


class _SessionClient:
    """The caller's end of a session: forwards its events and sends it commands until it ends."""

    def __init__(
        self,
        session: Isolated,
        turn: Turn,
        on_events: OnEvents,
        commands: queue.Queue[LiveCommand],
        guard: Guard,
    ):
        self.session = session
        self.turn = turn
        self.guard = guard
        self.lines = JsonLines(session.sock)
        self.on_events = on_events
        self.commands = commands
        self.report: RunReport | None = None
        self.stop_sent_s: float | None = None
        self.stop_heard = False

    def run(self, spec: RunSpec, made: MadePlan | None, sockets: Sequence[socket.socket] = ()) -> RunReport:
        self.lines.send(
            {
                "spec": spec.model_dump(mode="json"),
                "plan": made.model_dump(mode="json") if made else None,
                "source": source_of(spec.strategy),
                "memory_bytes": self.guard.limits.memory_bytes,
                "start_s": self.guard.limits.start_s,
            },
            sockets,
        )
        try:
            self._relay()
        except KeyboardInterrupt:
            self.commands.put({"kind": "stop"})
            self._relay()
        self.guard.check_memory()
        if self.report is None:
            raise RunError(f"The emulation ended without a report: {self.session.last_words()}.")
        return self.report

    def _relay(self) -> None:
        noted = False
        while not self.lines.closed:
            self.guard.check()
            for command in _drain(self.commands):
                self._send(command)
            for message in self.lines.receive(TICK_S):
                self._handle_message(message)
                if not noted:
                    noted = True
                    self.session.note_members()
            self._check_stop()

    def _check_stop(self) -> None:
        """Give up waiting for a session that ignores that it is to stop: raises `Cancelled`. Leaving
        `Isolated` then kills it.
        """
        if self.stop_sent_s is None or self.stop_heard or self.lines.closed:
            return
        if self.guard.clock() - self.stop_sent_s > STOP_HEARD_S:
            raise Cancelled(f"Stopped: the emulation did not react for {STOP_HEARD_S:.0f} s and was killed.")

    def _handle_message(self, message: dict[str, Any]) -> None:
        if "stopping" in message:
            self.stop_heard = True
            return
        if "error" in message:
            self.guard.check_memory()
            error = error_from_json(message["error"])
            if complaint := self.session.complaint():
                error.add_note(complaint)
            raise error
        events = EVENTS.validate_python(message["events"])
        if events and isinstance(events[-1], ReportMade):
            events[-1] = notes().added_to(events[-1])
            self.report = events[-1].report
        if any(map(is_only_compared, events)):
            self.session.step_back()
            self.turn.give_back()
        self.on_events(events)

    def _send(self, command: LiveCommand) -> None:
        if command["kind"] == "stop" and self.stop_sent_s is None:
            self.stop_sent_s = self.guard.clock()
        try:
            self.lines.send(command)
        except BrokenPipeError:
            self.lines.closed = True


def _drain(commands: queue.Queue[LiveCommand]) -> list[LiveCommand]:
    taken = []
    while True:
        try:
            taken.append(commands.get_nowait())
        except queue.Empty:
            return taken
