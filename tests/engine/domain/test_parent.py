"""A process ends with the one that started it."""

import select
import subprocess
import sys

PATIENCE_S = 60.0
WAIT = "import sys; print('up', flush=True); sys.stdin.read()"
START = f"""
import os, subprocess, sys
from functools import partial
from engine.domain.parent import end_with
subprocess.Popen([sys.executable, "-c", {WAIT!r}], preexec_fn=partial(end_with, os.getpid()))
sys.stdin.read()
"""


def test_a_process_whose_parent_is_killed_ends_though_nobody_tells_it() -> None:
    with subprocess.Popen([sys.executable, "-c", START], stdin=-1, stdout=-1) as parent:
        assert parent.stdout is not None and parent.stdout.readline() == b"up\n"
        parent.kill()
        ready, _, _ = select.select([parent.stdout], [], [], PATIENCE_S)
        assert ready, "the child, which has the same files, still waits"
        assert parent.stdout.read() == b""
