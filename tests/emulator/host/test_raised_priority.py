"""The priority of a session: higher where its starter may raise it, and never lower than before."""

import subprocess
import sys

PROGRAM = """
import os, resource
from emulator.host.enter import raise_priority
before = os.getpriority(os.PRIO_PROCESS, 0)
resource.setrlimit(resource.RLIMIT_NICE, (0, 0))
if os.geteuid() == 0:
    os.setuid(64998)  # no account has this number
raise_priority()
print(os.getpriority(os.PRIO_PROCESS, 0) - before)
"""


def test_who_may_not_raise_a_priority_keeps_it() -> None:
    """The limit then allows a niceness of 20 at least, which would be the lowest priority (getrlimit(2))."""
    found = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "0"
