"""How a run's process on a board ends."""

import os
import socket
import subprocess
import sys
from pathlib import Path

from tests.support.web import ROOT

SIGNALLED = """
import os, signal, sys
from emulator.node import board_process
board_process.BoardProcess.end = lambda self: os.kill(os.getpid(), signal.SIGTERM)
sys.exit(board_process.main(int(sys.argv[1]), "127.0.0.1", 1, 1 << 40, os.getppid()))
"""


def test_what_a_run_has_left_is_removed_though_the_signal_of_a_killed_node_comes_meanwhile(
    tmp_path: Path,
) -> None:
    """Such a node hangs up, too: its board then ends by itself, and the signal may come in the middle."""
    ours, theirs = socket.socketpair()
    ours.close()
    with theirs:
        ended = subprocess.run(
            [sys.executable, "-c", SIGNALLED, str(theirs.fileno())],
            cwd=ROOT,
            env=os.environ | {"XDG_CACHE_HOME": str(tmp_path)},
            pass_fds=[theirs.fileno()],
        )
    assert ended.returncode == 0
    assert list((tmp_path / "edgeloom" / "node-runs").iterdir()) == []
