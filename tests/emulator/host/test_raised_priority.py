"""The priority of a session: higher where its starter may raise it, and never lower than before."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

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


AUTOGROUP = Path("/proc/self/autogroup")
needs_autogroups = pytest.mark.skipif(not AUTOGROUP.exists(), reason="this kernel has no autogroups")


def niceness_of_the_group_after(program: str) -> int:
    """That of a new terminal, so to speak, in which this program has ended."""
    shown = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {program!r}], check=True); "
    shown += f"print(open({str(AUTOGROUP)!r}).read())"
    command = [sys.executable, "-c", shown]
    found = subprocess.run(command, capture_output=True, text=True, check=True, start_new_session=True)
    return int(re.search(r"nice (-?\d+)", found.stdout).group(1))


@needs_autogroups
@pytest.mark.parametrize(
    "program",
    [
        "from emulator.host.enter import raise_priority; raise_priority()",
        "from emulator.host.rights import rights; rights().require()",
    ],
    ids=["raise", "rights"],
)
def test_what_is_started_later_in_the_same_terminal_does_not_come_before_all_else(program: str) -> None:
    assert niceness_of_the_group_after(program) == 0
