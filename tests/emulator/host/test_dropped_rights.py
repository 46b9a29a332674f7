"""Whoever drops its rights leaves nobody behind, even if it is killed at that moment."""

import subprocess
import sys

from emulator.host.leftovers import children, is_alive
from emulator.host.rights import IDENTITY
from tests.support.web import wait_until

STOPPED = f"""
import signal
from pathlib import Path
from emulator.host import enter

def stop(*_):
    print("made", flush=True)
    signal.pause()

Path.write_text = stop
enter.users(0, 0, {IDENTITY})
"""
"""The helper process is there, and its numbers of users are about to be written."""


def test_the_helper_that_makes_a_user_namespace_ends_with_whom_it_helps() -> None:
    """It has the files of the session, and with them its turn, which no other run would ever get."""
    with subprocess.Popen((sys.executable, "-c", STOPPED), stdout=subprocess.PIPE) as session:
        assert session.stdout is not None
        assert session.stdout.readline() == b"made\n"
        (helper,) = children(session.pid)
        session.kill()
    wait_until(lambda: not is_alive(helper), "the end of the helper")
