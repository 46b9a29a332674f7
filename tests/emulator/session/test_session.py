"""What a session sends and takes between the calls of the engine, without a network or a process."""

import json
import math
import os
import socket
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest

from emulator.host.memory import MemoryGroup
from emulator.session import server
from emulator.session.client import _drain, _SessionClient
from emulator.session.limits import Guard, Limits
from emulator.session.server import BATCH_S, Session
from emulator.session.turns import Turn
from emulator.session.wire import JsonLines
from engine import confined
from engine.domain.errors import Cancelled, PlanError, RunError
from engine.domain.events import ClockTicked, StateChanged, to_json
from engine.domain.spec import RunSpec
from engine.models.reference import process
from engine.models.reference.process import run_apart
from engine.runs.holds import Most
from engine.runs.made_plan import made_plan
from engine.runs.predict import prepare
from tests.support.one_device import spec_of

TICK = ClockTicked(time_s=1.0, wall_s=2.0)
RUNNING = StateChanged(state="running")


class FakeLines:
    """The other end's messages, one list per call of `receive`, and what was sent to it."""

    def __init__(self, *received: list[dict[str, object]]):
        self.waiting = deque(received)
        self.sent: list[dict[str, object]] = []
        self.closed = self.broken = False
        self.sockets: list[socket.socket] = []

    def receive(self, timeout_s: float) -> list[dict[str, object]]:
        if not self.waiting:
            self.closed = True
            return []
        return self.waiting.popleft()

    def send(self, message: dict[str, object], sockets: Sequence[socket.socket] = ()) -> None:
        if self.broken:
            raise BrokenPipeError
        self.sent.append(message)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The session's clock: its last entry."""
    now_s = [50.0]
    monkeypatch.setattr(server.time, "monotonic", lambda: now_s[-1])
    return now_s


def test_events_wait_for_their_batch_and_a_state_takes_all_before_it_along(clock: list[float]) -> None:
    lines = FakeLines()
    session = Session(lines)  # type: ignore[arg-type]
    session.watch(TICK)
    assert lines.sent == []
    session.watch(RUNNING)
    assert lines.sent == [{"events": to_json([TICK, RUNNING])}]


def test_a_batch_is_sent_once_it_is_old_enough(clock: list[float]) -> None:
    lines = FakeLines([], [])
    session = Session(lines)  # type: ignore[arg-type]
    session.watch(TICK)
    clock.append(50.0 + 0.9 * BATCH_S)
    assert session.next_command() is None
    assert lines.sent == []
    clock.append(50.0 + 1.1 * BATCH_S)
    session.next_command()
    assert lines.sent == [{"events": to_json([TICK])}]
    session.flush()
    assert len(lines.sent) == 1  # an empty batch is not sent


def test_commands_come_in_order_and_stop_is_none_of_them() -> None:
    first, second = {"kind": "link_down", "link": "a--b"}, {"kind": "link_up", "link": "a--b"}
    session = Session(FakeLines([first, {"kind": "stop"}, second], [], []))  # type: ignore[arg-type]
    assert session.next_command() == first
    assert session.next_command() == second
    assert session.should_stop()


def test_a_run_has_the_time_to_get_ready_and_the_memory_that_its_starter_says(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given: list[tuple[object, ...]] = []
    monkeypatch.setattr(server, "execute", lambda *arguments: given.append(arguments))
    for seconds in ("", "7"):
        monkeypatch.setenv("LOOM_READY_S", seconds)
        first = {"spec": spec().model_dump(mode="json"), "memory_bytes": 5, "start_s": 9.0}
        Session(FakeLines([first])).run()  # type: ignore[arg-type]
    most = Most(5, 8192, 9.0, len(os.sched_getaffinity(0)))
    assert [arguments[-4:-1] for arguments in given] == [(120.0, most, None), (7.0, most, None)]


def test_a_run_that_was_planned_before_takes_that_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[tuple[object, ...]] = []
    monkeypatch.setattr(server, "execute", lambda *arguments: given.append(arguments))
    made, _ = client()
    plan = made_plan(spec(), prepare(spec()).plan)
    with pytest.raises(RunError):
        made.run(spec(), plan)
    Session(FakeLines(json.loads(json.dumps(made.lines.sent)))).run()  # type: ignore[arg-type]
    assert given[0][-2] == plan and given[0][-2].checked(spec()) == plan.plan  # type: ignore[attr-defined]


def test_a_session_without_an_owner_ends_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def leave(status: int) -> None:
        raise SystemExit(status)

    monkeypatch.setattr(server.os, "_exit", leave)
    with pytest.raises(SystemExit):
        Session(FakeLines()).should_stop()  # type: ignore[arg-type]


class FakeIsolated:
    """A session's process that has written `complaint` before it ended."""

    sock = None
    complaint_text = "Traceback\nthe reason"

    def note_members(self) -> None:
        self.noted = True

    def complaint(self) -> str:
        return self.complaint_text

    def last_words(self) -> str:
        return self.complaint_text.splitlines()[-1]


def client(*received: list[dict[str, object]], commands: tuple[dict[str, str], ...] = ()):
    import queue

    asked: queue.Queue[dict[str, str]] = queue.Queue()
    for command in commands:
        asked.put(command)
    events: list[object] = []
    endless = Guard(Limits(math.inf, 7, 8.0), MemoryGroup(0))
    turn = Turn((), frozenset())
    made = _SessionClient(FakeIsolated(), turn, events.extend, asked, endless)  # type: ignore[arg-type]
    made.lines = FakeLines(*received)  # type: ignore[assignment]
    return made, events


def spec() -> RunSpec:
    return spec_of("tiny-gpt2")


def test_a_session_that_ends_without_a_report_is_an_error_with_its_last_line() -> None:
    made, events = client([{"events": to_json([RUNNING])}], commands=({"kind": "stop"},))
    with pytest.raises(RunError, match=r"ended without a report: the reason\."):
        made.run(spec(), None)
    assert events == [RUNNING]
    limits = {"memory_bytes": 7, "start_s": 8.0}
    first = {"spec": spec().model_dump(mode="json"), "plan": None, "source": "", **limits}
    assert made.lines.sent == [first, {"kind": "stop"}]
    assert made.session.noted


def test_an_error_of_the_session_keeps_its_class_and_carries_what_the_process_wrote() -> None:
    made, _ = client([{"error": {"kind": "PlanError", "message": "no plan"}}])
    with pytest.raises(PlanError, match="no plan") as caught:
        made.run(spec(), None)
    assert caught.value.__notes__ == ["Traceback\nthe reason"]


def test_a_command_to_a_session_that_has_just_ended_is_dropped() -> None:
    made, _ = client()
    made.lines.broken = True
    made._send({"kind": "stop"})
    assert made.lines.sent == []
    assert made.lines.closed
    assert _drain(made.commands) == []


def patient(seconds: float, *received: list[dict[str, object]]):
    """A client with a stop to send, whose clock goes on by `seconds` whenever it waits."""
    made, events = client(*received, commands=({"kind": "stop"},))
    now_s = iter(range(1000))
    made.guard.clock = lambda: seconds * next(now_s)
    return made, events


def test_a_session_that_ignores_a_stop_is_killed() -> None:
    """Leaving the block of `Isolated` kills it; a report cannot come any more."""
    made, _ = patient(1.0, *[[]] * 100)
    with pytest.raises(Cancelled, match="did not react for 5 s and was killed"):
        made.run(spec(), None)
    assert len(made.lines.waiting) > 80


def test_a_session_that_has_heard_a_stop_may_take_its_time() -> None:
    made, events = patient(1.0, [], [{"stopping": True}], *[[]] * 100, [{"events": to_json([RUNNING])}])
    with pytest.raises(RunError, match="ended without a report"):
        made.run(spec(), None)
    assert events == [RUNNING]


def test_a_session_says_that_it_has_heard_a_stop() -> None:
    lines = FakeLines([{"kind": "stop"}])
    assert Session(lines).should_stop()  # type: ignore[arg-type]
    assert lines.sent == [{"stopping": True}]


def test_neither_shells_nor_what_computes_references_and_reads_files_runs_in_real_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """No clock waits for them, and a paced device does."""
    session, without = Session(FakeLines()), list[frozenset[int]]()  # type: ignore[arg-type]
    session.paced, session.network = True, SimpleNamespace(shells=frozenset({3, 4}))  # type: ignore[assignment]
    monkeypatch.setattr(server, "children_in_real_time", lambda but: without.append(but))
    monkeypatch.setattr(process, "pids", lambda: frozenset({7}))
    monkeypatch.setattr(confined, "pids", lambda: frozenset({9}))
    session.prioritise_devices()
    assert without == [{3, 4, 7, 9}]


def test_a_session_computes_its_reference_in_a_copy_of_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a program of its own it would import torch anew."""
    (tmp_path / "tells_its_parent.py").write_text(
        "import os\ndef main(arguments):\n    open(arguments[1], 'w').write(str(os.getppid()))\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))

    def run(session: Session) -> None:
        run_apart("tells_its_parent", spec_of("tiny-gpt2"), tmp_path / "parent")
        session.lines.send({"me": os.getpid()})

    monkeypatch.setattr(Session, "run", run)
    ours, theirs = socket.socketpair()
    child = os.fork()
    if not child:
        ours.close()
        server.main(theirs.detach())
    theirs.close()
    with ours:
        assert JsonLines(ours).receive(60.0) == [{"me": child}]
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert (tmp_path / "parent").read_text() == str(child)
