"""Keep a few child processes running, restart those that end, and stop all of them at the end.

Signals are blocked and waited for, so one loop handles everything: a child that ended, Ctrl-C, a time-out.
Each child is the leader of its own process group (the terminal's Ctrl-C does not reach it) and is told by
the kernel to stop should this process die first.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from engine.domain.parent import end_with
from webapp.base import core_wait
from webapp.ops.places import ROOT, OpsError, echo, shown
from webapp.ops.steps import last_line

STOP_SIGNALS = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}
WAITED_SIGNALS = STOP_SIGNALS | {signal.SIGCHLD}
SAY_EVERY_S = 20.0
"""How often a start says what it waits for. It waits while that process lives: a busy machine is slow."""
PROBE_EVERY_S = 0.1
ASK_EVERY_S = 10.0
"""How often what could not be started is asked for again."""
LONGEST_PAUSE_S = 30.0
ROTATE_EVERY_S = 60.0
LOG_BYTES = 20_000_000
"""A log that is longer is moved, so that the two files of a process have about twice as much at most."""
CALM_S = 60.0
"""A child that ran at least this long before it ended is restarted after the shortest pause."""

# Signals of a stop, each with the time that it gets: first a worker may finish, then it is killed.
ESCALATION = ((signal.SIGTERM, 10.0), (signal.SIGQUIT, 5.0), (signal.SIGKILL, 5.0))
TICKS_PER_S = os.sysconf("SC_CLK_TCK")


@dataclass
class Child:
    """One supervised process. Who waits for it calls `is_ready` until it returns true."""

    name: str
    command: Sequence[str]
    log: Path
    environment: Mapping[str, str]
    is_ready: Callable[[], bool]
    process: subprocess.Popen[bytes] | None = None
    log_start: int = 0
    started_s: float = 0.0
    restart_at_s: float | None = None
    pause_s: float = field(default=1.0)
    niceness: int = 0

    def start(self) -> None:
        self.log.parent.mkdir(parents=True, exist_ok=True)
        self.log_start = self.log.stat().st_size if self.log.exists() else 0
        self.restart_at_s = None
        self.started_s = time.monotonic()
        with self.log.open("ab") as output:
            try:
                self.process = subprocess.Popen(
                    self.command,
                    cwd=ROOT,
                    env=dict(self.environment),
                    start_new_session=True,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    preexec_fn=partial(ends_with_its_parent, os.getpid(), self.niceness),
                )
            except OSError as error:
                raise OpsError(f"{self.name} cannot start: {self.command[0]}: {error.strerror}.") from error

    def rotate(self) -> None:
        """Move a log that has grown to its second file, whose former contents go. The process writes on."""
        if self.log.exists() and self.log.stat().st_size > LOG_BYTES:
            shutil.copyfile(self.log, self.log.with_name(f"{self.log.name}.1"))
            os.truncate(self.log, 0)

    def has_logged(self, text: bytes) -> bool:
        """Whether the log of this start contains `text`."""
        with self.log.open("rb") as lines:
            lines.seek(self.log_start)
            return text in lines.read()

    def has_ended(self) -> bool:
        return self.process is not None and self.process.poll() is not None

    def processor_s(self) -> float:
        """The seconds of a core that its process has had; 0 without one."""
        try:
            assert self.process is not None
            fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            return 0.0
        return (int(fields[11]) + int(fields[12])) / TICKS_PER_S

    def waited_s(self) -> float:
        """The seconds for which its process has waited for a core; 0 without one."""
        return 0.0 if self.process is None else core_wait.waited_s(self.process.pid)

    def send(self, number: signal.Signals) -> None:
        """Send a signal to the child; SIGKILL goes to its whole process group."""
        assert self.process is not None
        try:
            if number == signal.SIGKILL:
                os.killpg(self.process.pid, number)
            else:
                self.process.send_signal(number)
        except ProcessLookupError:
            pass  # it has just ended by itself


def _waits(waiting: Sequence[Child], since_s: float) -> str:
    names = ", ".join(child.name for child in waiting)
    first = waiting[0]
    words = last_line(first.log)
    said = f"the last line of {shown(first.log)} is {words!r}" if words else f"{shown(first.log)} is empty"
    had = f"{first.name} has had {first.processor_s():.1f} s of a core"
    return f"Waiting for {names} for {since_s:.0f} s: {had}, and {said}. Ctrl-C gives up."


def ends_with_its_parent(parent: int, niceness: int = 0) -> None:
    """For `preexec_fn`: the child is told to stop when the thread of the process `parent` that started it has
    ended. It and its autogroup get this niceness, where this user may give it.
    """
    end_with(parent, signal.SIGTERM)
    signal.pthread_sigmask(signal.SIG_SETMASK, set())
    if niceness:
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, 0, niceness)
            Path("/proc/self/autogroup").write_text(str(niceness))


class Supervisor:
    """Start children one after another, then `watch` them until a signal to stop. A context manager."""

    def __init__(self) -> None:
        self.children: list[Child] = []
        self.later: dict[str, tuple[Child, Callable[[], bool]]] = {}

    def __enter__(self) -> Supervisor:
        self.mask_before = signal.pthread_sigmask(signal.SIG_BLOCK, WAITED_SIGNALS)
        return self

    def __exit__(self, *exc: object) -> None:
        self.stop()
        while signal.sigtimedwait(WAITED_SIGNALS, 0) is not None:
            pass  # ignore a second Ctrl-C during the stop
        signal.pthread_sigmask(signal.SIG_SETMASK, self.mask_before)

    def start(self, *children: Child) -> None:
        """Start them and wait until every one is ready; raises `OpsError` if one ends."""
        self.launch(*children)
        self.wait_until_ready(*children)

    def launch(self, *children: Child) -> None:
        for child in children:
            child.start()
            self.children.append(child)

    def launch_when(self, child: Child, is_possible: Callable[[], bool]) -> None:
        """Let `watch` start a child as soon as `is_possible`, which it asks every `ASK_EVERY_S`."""
        self.later[child.name] = child, is_possible

    def wait_until_ready(self, *children: Child) -> None:
        """Wait until these children are ready. Raises `OpsError` if one of all children ends meanwhile."""
        began_s = said_s = time.monotonic()
        waiting = list(children)
        while waiting:
            for child in self.children:
                if child.has_ended():
                    assert child.process is not None
                    raise OpsError(
                        f"{child.name} ended at its start with status {child.process.returncode}: "
                        f"{last_line(child.log)!r}; read {shown(child.log)}."
                    )
            waiting = [child for child in waiting if not child.is_ready()]
            now_s = time.monotonic()
            if waiting and now_s - said_s > SAY_EVERY_S:
                said_s = now_s
                echo(_waits(waiting, now_s - began_s))
            if waiting:
                self._wait_for_signal(PROBE_EVERY_S)

    def watch(self) -> None:
        """Restart children that end, after a longer pause each time, and start those that were not possible
        yet. Ends by raising KeyboardInterrupt.
        """
        asked_s = time.monotonic()
        while True:
            now = time.monotonic()
            if now >= asked_s + ASK_EVERY_S:
                asked_s = now
                self._launch_possible()
            for child in self.children:
                if child.restart_at_s is not None and child.restart_at_s <= now:
                    child.start()
                elif child.restart_at_s is None and child.has_ended():
                    self._plan_restart(child, now)
            for child in self.children:
                child.rotate()
            pending = [child.restart_at_s for child in self.children if child.restart_at_s is not None]
            pending += [asked_s + ASK_EVERY_S] if self.later else []
            self._wait_for_signal(max(0.0, min([*pending, now + ROTATE_EVERY_S]) - time.monotonic()))

    def _launch_possible(self) -> None:
        for child, is_possible in tuple(self.later.values()):
            if is_possible():
                del self.later[child.name]
                self.launch(child)
                echo(f"{child.name} is possible now and starts.")

    def _plan_restart(self, child: Child, now: float) -> None:
        assert child.process is not None
        child.pause_s = 1.0 if now - child.started_s > CALM_S else min(2 * child.pause_s, LONGEST_PAUSE_S)
        child.restart_at_s = now + child.pause_s
        status = child.process.returncode
        how = f"was ended by {signal.Signals(-status).name}" if status < 0 else f"ended with status {status}"
        echo(f"{child.name} {how}; it starts again in {child.pause_s:.0f} s. Its log: {shown(child.log)}")

    def _wait_for_signal(self, timeout_s: float) -> None:
        """Wait until a child ends or the time is over; raises KeyboardInterrupt on a stop signal."""
        received = signal.sigtimedwait(WAITED_SIGNALS, timeout_s)
        if received is not None and received.si_signo in STOP_SIGNALS:
            raise KeyboardInterrupt

    def stop(self) -> None:
        """Stop all children, the last started first; Redis, which was started first, after all others."""
        later = [child for child in self.children[1:] if child.process is not None]
        _stop(list(reversed(later)))
        _stop(self.children[:1])
        self.children.clear()


def _stop(children: Sequence[Child]) -> None:
    """Send one signal after another until all have ended, and reap them."""
    for number, patience_s in ESCALATION:
        running = [child for child in children if not child.has_ended()]
        for child in running:
            child.send(number)
        deadline = time.monotonic() + patience_s
        for child in running:
            assert child.process is not None
            try:
                child.process.wait(timeout=max(0.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                break
        if all(child.has_ended() for child in children):
            break
    for child in children:
        child.send(signal.SIGKILL)  # kill what is left of its process group
