"""A session that dies takes everything with it, however it dies, and nothing else."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from emulator.host.leftovers import Process, children, cleanup_stale, is_alive, process
from emulator.host.places import queue_name
from emulator.session.calls import call
from emulator.session.client import emulate
from emulator.session.fork_server import servers
from emulator.session.turns import tickets
from engine.domain.errors import HostError, RunError
from engine.domain.events import Event, StateChanged
from engine.domain.spec import RunSpec
from engine.domain.workload import Workload
from engine.models import catalogue
from engine.strategies.registry import by_rule
from tests.support.network_bodies import interfaces
from tests.support.session_bodies import stay
from tests.support.small_clusters import star

pytestmark = pytest.mark.root

ROOT = Path(__file__).resolve().parents[3]


def until(true: Callable[[], bool], what: str) -> None:
    """Wait for a condition; fails after four minutes."""
    deadline_s = time.monotonic() + 240
    while not true():
        assert time.monotonic() < deadline_s, f"never: {what}"
        time.sleep(0.02)


def descendants(pid: int) -> list[Process]:
    found = children(pid)
    return found + [below for child in found for below in descendants(child.pid)]


@pytest.fixture
def owner(tmp_path: Path, state_directory: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process that owns a session with a network of three devices, ready."""
    spec, ready = tmp_path / "spec.json", tmp_path / "shared" / "ready"
    ready.parent.mkdir()
    spec.write_text(json.dumps(star(3).model_dump(mode="json")))
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([*sys.path, str(ROOT)])}
    line = [sys.executable, "-m", "tests.support.session_bodies", str(spec), str(ready)]
    popen = subprocess.Popen(line, env=environment, stderr=subprocess.DEVNULL)
    until(ready.exists, "the session is ready")
    yield popen
    if popen.poll() is None:
        popen.kill()
    popen.wait()


def test_killing_the_init_ends_every_process_and_interface(owner: subprocess.Popen[bytes]) -> None:
    before = interfaces()
    (server,) = children(owner.pid)
    below = descendants(server.pid)
    assert len(below) > 5  # who waits for the init, the init, four shells
    (outer,) = children(server.pid)
    (init,) = children(outer.pid)
    os.kill(init.pid, signal.SIGKILL)
    until(lambda: not any(is_alive(known) for known in below), "all processes of the session are gone")
    assert interfaces() == before
    assert owner.wait() != 0


def test_a_session_is_no_leftover_and_is_not_seen_outside_and_ends_when_its_owner_is_killed(
    owner: subprocess.Popen[bytes], state_directory: Path
) -> None:
    assert list(state_directory.glob("session-*.json"))
    assert cleanup_stale(state_directory) == 0
    known = process(owner.pid)
    assert known is not None
    assert is_alive(known)
    assert not any(name.startswith(("d0", "s0")) for name in interfaces())
    below = descendants(owner.pid)
    assert len(below) > 5 and all(map(is_alive, below))
    owner.kill()
    until(lambda: not any(is_alive(known) for known in below), "all processes of the session are gone")


def test_a_dead_session_is_an_error_with_its_last_words() -> None:
    with pytest.raises(HostError, match=r"^stay ended without a result: FileNotFoundError"):
        call(stay, star(2).model_dump(mode="json"), "/no/such/directory/ready")


def tiny_spec(**changes: object) -> RunSpec:
    model, weights = catalogue.resolve("tiny-gpt2", "random")
    workload = Workload(prompt_tokens=6, new_tokens=2)
    spec = RunSpec(
        cluster=star(2),
        model=model,
        weights=weights,
        strategy="gpipe",
        params=by_rule("gpipe"),
        workload=workload,
        dilation=4.0,
    )
    return spec.model_copy(update=changes)


def test_a_killed_emulation_says_so_and_leaves_nothing(state_directory: Path) -> None:
    killed: list[Process] = []

    def kill_when_running(events: list[Event]) -> None:
        if (
            any(isinstance(event, StateChanged) and event.state == "building" for event in events)
            and not killed
        ):
            (outer,) = [child for server in servers() for child in children(server)]
            killed.extend([outer, *descendants(outer.pid)])
            os.kill(killed[1].pid, signal.SIGKILL)

    with pytest.raises(RunError, match="ended without a report"):
        emulate(tiny_spec(), kill_when_running)
    assert killed
    until(lambda: not any(is_alive(known) for known in killed), "nothing is left")
    assert list(state_directory.glob("session-*")) == []
    assert tickets(queue_name()) == []
