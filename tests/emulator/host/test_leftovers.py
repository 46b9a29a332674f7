"""What a crash left is ended by pid and start time, and nothing else ever is."""

import os
import subprocess
from pathlib import Path

from emulator.host.leftovers import Process, children, cleanup_stale, is_alive, process, record, recorded


def sleeper() -> subprocess.Popen[bytes]:
    return subprocess.Popen(["sleep", "1000"])


def dead_process() -> Process:
    """A process that was and is no more."""
    done = sleeper()
    known = process(done.pid)
    assert known is not None
    done.kill()
    done.wait()
    return known


def test_a_session_whose_owner_is_gone_is_ended(tmp_path: Path) -> None:
    left = sleeper()
    known = process(left.pid)
    assert known is not None
    path = record(tmp_path, dead_process(), [known])
    assert cleanup_stale(tmp_path) == 1
    assert left.wait() == -9
    assert not path.exists()


def test_a_session_whose_owner_lives_is_left_alone(tmp_path: Path) -> None:
    mine = sleeper()
    own, known = process(os.getpid()), process(mine.pid)
    assert own is not None
    assert known is not None
    path = record(tmp_path, own, [known])
    assert cleanup_stale(tmp_path) == 0
    assert is_alive(known)
    assert path.exists()
    mine.kill()
    mine.wait()


def test_a_stranger_with_the_same_pid_is_left_alone(tmp_path: Path) -> None:
    stranger = sleeper()
    known = process(stranger.pid)
    assert known is not None
    record(tmp_path, dead_process(), [known._replace(start_ticks=known.start_ticks - 1)])
    assert cleanup_stale(tmp_path) == 0
    assert is_alive(known)
    stranger.kill()
    stranger.wait()


def test_a_zombie_counts_as_dead() -> None:
    zombie = sleeper()
    known = process(zombie.pid)
    assert known is not None
    zombie.kill()
    os.waitid(os.P_PID, zombie.pid, os.WEXITED | os.WNOWAIT)
    assert not is_alive(known)
    zombie.wait()


def test_children_are_found_with_their_start_time() -> None:
    child = sleeper()
    assert process(child.pid) in children(os.getpid())
    child.kill()
    child.wait()


def test_sessions_of_other_processes_are_not_counted_as_ones_own(tmp_path: Path) -> None:
    mine, other = process(os.getpid()), process(os.getppid())
    assert mine is not None and other is not None
    kept = record(tmp_path, mine, [mine])
    record(tmp_path, other, [other])
    assert recorded(tmp_path, os.getpid()) == [kept]
