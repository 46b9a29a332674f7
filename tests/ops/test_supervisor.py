"""Children are restarted when they end by themselves, and none is left when the supervisor stops."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from tests.ops.conftest import is_running, wait_until
from webapp.ops import supervisor as module
from webapp.ops.places import OpsError
from webapp.ops.supervisor import Child, Supervisor, ends_with_its_parent

SLEEP = "import signal, sys; print('ready', flush=True); signal.pause()"
DEAF = (
    "import signal; [signal.signal(n, signal.SIG_IGN) for n in (signal.SIGTERM, signal.SIGQUIT)];"
    "print('ready', flush=True)\nwhile True: signal.pause()"
)


def child(directory: Path, code: str, name: str = "child") -> Child:
    log = directory / f"{name}.log"
    made = Child(
        name,
        (sys.executable, "-c", code),
        log,
        dict(os.environ),
        is_ready=lambda: made.has_logged(b"ready"),
    )
    return made


def interrupt_when(
    condition: Callable[[], object], what: str, number: signal.Signals = signal.SIGINT
) -> threading.Thread:
    """Send this thread SIGINT, as Ctrl-C does, or another signal once the condition holds."""
    here = threading.get_ident()

    def wait_and_interrupt() -> None:
        try:
            wait_until(condition, what)
        finally:
            signal.pthread_kill(here, number)

    thread = threading.Thread(target=wait_and_interrupt)
    thread.start()
    return thread


def test_a_child_is_ready_before_the_next_one_starts_and_gone_at_the_end(tmp_path: Path) -> None:
    first, second = child(tmp_path, SLEEP, "first"), child(tmp_path, SLEEP, "second")
    with Supervisor() as supervisor:
        supervisor.start(first)
        assert first.has_logged(b"ready")
        supervisor.start(second)
        pids = [first.process.pid, second.process.pid]
        assert all(is_running(pid) for pid in pids)
    assert not any(is_running(pid) for pid in pids)


def test_a_child_that_ends_at_its_start_is_named_with_its_last_words(tmp_path: Path) -> None:
    bad = child(tmp_path, "raise SystemExit('no such database')", "web")
    sentence = r"web ended .* status 1: 'no such database'"
    with Supervisor() as supervisor, pytest.raises(OpsError, match=sentence):
        supervisor.start(bad)


def test_a_start_waits_as_long_as_the_process_lives_and_says_for_what_and_how_much_of_a_core_it_has_had(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(module, "SAY_EVERY_S", 0.05)
    work = "import signal, time\nwhile time.process_time() < 0.3: pass\n"
    slow = child(tmp_path, f"{work}print('loading models', flush=True); signal.pause()", "worker")
    said: list[str] = []

    def after_two_lines() -> bool:
        said.extend(capsys.readouterr().err.splitlines())
        return len(said) >= 2 and "loading models" in said[-1]

    slow.is_ready = after_two_lines
    with Supervisor() as supervisor:
        supervisor.start(slow)
        assert is_running(slow.process.pid)
    assert all(re.match(r"Waiting for worker for \d+ s: ", line) for line in said)
    words = r"worker has had ([\d.]+) s of a core, and the last line of .*worker\.log is 'loading models'\. "
    found = re.search(f"{words}Ctrl-C gives up", said[-1])
    assert found and 0.2 < float(found[1]) < 60


def test_a_start_that_waits_ends_with_ctrl_c(tmp_path: Path) -> None:
    silent = child(tmp_path, "import signal; signal.pause()", "worker")
    with Supervisor() as supervisor:
        thread = interrupt_when(lambda: silent.process is not None, "the start")
        with pytest.raises(KeyboardInterrupt):
            supervisor.start(silent)
        thread.join()
    assert not is_running(silent.process.pid)


def test_a_child_that_ends_is_started_again_and_a_line_is_printed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mortal = child(tmp_path, SLEEP, "worker-plan")
    with Supervisor() as supervisor:
        supervisor.start(mortal)
        first = mortal.process.pid
        os.kill(first, signal.SIGKILL)
        thread = interrupt_when(
            lambda: mortal.process.pid != first and mortal.has_logged(b"ready"), "the second start"
        )
        with pytest.raises(KeyboardInterrupt):
            supervisor.watch()
        second = mortal.process.pid
        assert is_running(second)
    thread.join()
    assert not is_running(second)
    assert "worker-plan was ended by SIGKILL; it starts again in 2 s" in capsys.readouterr().err


def test_each_further_death_is_answered_later_up_to_a_limit(tmp_path: Path) -> None:
    mortal = child(tmp_path, "raise SystemExit(3)")
    pauses = []
    for _ in range(7):
        mortal.start()
        mortal.process.wait()
        Supervisor()._plan_restart(mortal, mortal.started_s)
        pauses.append(mortal.pause_s)
    assert pauses == [2, 4, 8, 16, 30, 30, 30]


def test_a_child_that_was_calm_for_long_starts_again_at_once(tmp_path: Path) -> None:
    mortal = child(tmp_path, "raise SystemExit(3)")
    mortal.pause_s = 30.0
    mortal.start()
    mortal.process.wait()
    Supervisor()._plan_restart(mortal, mortal.started_s + module.CALM_S + 1)
    assert mortal.pause_s == 1.0


def test_a_child_deaf_to_requests_is_killed_with_what_it_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    patience = ((signal.SIGTERM, 0.2), (signal.SIGQUIT, 0.2), (signal.SIGKILL, 20.0))
    monkeypatch.setattr(module, "ESCALATION", patience)
    grandchild = tmp_path / "grandchild"
    code = (
        "import pathlib, subprocess, sys\n"
        f"p = subprocess.Popen([sys.executable, '-c', {DEAF!r}])\n"
        f"pathlib.Path({str(grandchild)!r}).write_text(str(p.pid))\n{DEAF}"
    )
    deaf = child(tmp_path, code)
    with Supervisor() as supervisor:
        supervisor.start(deaf)
        wait_until(lambda: deaf.log.read_text().count("ready") == 2, "both processes")
        pids = [deaf.process.pid, int(grandchild.read_text())]
    assert not is_running(pids[0])
    wait_until(lambda: not is_running(pids[1]), "the end of the grandchild")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_while_a_child_starts_stops_it(tmp_path: Path, number: signal.Signals) -> None:
    slow = child(tmp_path, "import signal; signal.pause()")
    thread = interrupt_when(lambda: slow.process is not None, "the start", number)
    with pytest.raises(KeyboardInterrupt), Supervisor() as supervisor:
        supervisor.start(slow)
    thread.join()
    assert not is_running(slow.process.pid)


def test_signals_are_as_before_afterwards(tmp_path: Path) -> None:
    before = signal.pthread_sigmask(signal.SIG_BLOCK, set())
    with Supervisor() as supervisor:
        supervisor.start(child(tmp_path, SLEEP))
    assert signal.pthread_sigmask(signal.SIG_BLOCK, set()) == before


def test_a_log_that_has_grown_is_moved_and_its_process_writes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "LOG_BYTES", 1000)
    one = child(tmp_path, SLEEP)
    with one.log.open("ab") as writer:
        writer.write(b"old" * 500)
        writer.flush()
        one.rotate()
        writer.write(b"new")
        writer.flush()
        one.rotate()
    assert one.log.read_bytes() == b"new"
    assert one.log.with_name(f"{one.log.name}.1").read_bytes() == b"old" * 500


def test_a_child_that_was_not_possible_at_the_start_is_started_when_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As an emulating worker, whose Mininet somebody installs while the server runs."""
    monkeypatch.setattr(module, "ASK_EVERY_S", 0.05)
    installed = tmp_path / "installed"
    asked: list[bool] = []

    def is_possible() -> bool:
        asked.append(installed.exists())
        if len(asked) == 3:
            installed.touch()
        return asked[-1]

    late = child(tmp_path, SLEEP, "late")
    with Supervisor() as supervisor:
        supervisor.launch_when(late, is_possible)
        interrupt_when(lambda: late.log.exists() and late.has_logged(b"ready"), "the child to run")
        with pytest.raises(KeyboardInterrupt):
            supervisor.watch()
        assert asked == [False, False, False, True], "it is asked until it is possible, and started once"
    assert late.has_ended()


def test_a_child_whose_supervisor_was_killed_while_it_was_forked_does_not_start() -> None:
    gone = subprocess.Popen(("true",))
    gone.wait()
    child_of_nobody = partial(ends_with_its_parent, gone.pid)
    assert subprocess.run((sys.executable, "-c", "exit(7)"), preexec_fn=child_of_nobody).returncode == 1


@pytest.mark.skipif(os.geteuid() != 0, reason="only root raises priorities")
def test_a_child_has_the_priority_that_it_is_given_and_so_has_its_autogroup(tmp_path: Path) -> None:
    """Without its autogroup's, its own would count among its own processes only."""
    made = child(tmp_path, SLEEP)
    made.niceness = -10
    with Supervisor() as supervisor:
        supervisor.start(made)
        assert made.process is not None
        assert os.getpriority(os.PRIO_PROCESS, made.process.pid) == -10
        group = Path(f"/proc/{made.process.pid}/autogroup")
        assert not group.exists() or "nice -10" in group.read_text()
