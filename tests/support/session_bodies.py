"""A session that builds a network and then stays, for tests that kill it."""

import contextlib
import ctypes
import errno
import os
import platform
import resource
import socket
import sys
import tempfile
import time
import uuid
from collections.abc import Callable
from functools import partial
from pathlib import Path

from emulator.host.priority import run_in_real_time
from tests.support.network_bodies import opened


def stay(spec: dict[str, object], ready: str) -> None:
    """Build the network, say so by making the file `ready`, and stay until killed."""
    with opened(spec):
        with open(ready, "w") as file:  # noqa: PTH123  (nothing else is wanted here)
            file.write("ready")
        time.sleep(1000)


REMEMBERED: list[str] = []


def remember(what: str) -> list[str]:
    """What this process was told before, and this."""
    REMEMBERED.append(what)
    return REMEMBERED


def imported(name: str) -> bool:
    """Whether this process has a module already."""
    return name in sys.modules


def directory_of_temporary_files() -> str:
    return tempfile.gettempdir()


def threads() -> int:
    return len(os.listdir("/proc/self/task"))  # noqa: PTH208


def kinds_of_sockets() -> list[int]:
    """Of those that this process holds."""
    found = []
    for name in os.listdir("/proc/self/fd"):  # noqa: PTH208
        with contextlib.suppress(OSError), socket.socket(fileno=os.dup(int(name))) as held:
            found.append(int(held.type))
    return found


def open_places() -> list[str]:
    """The directories, namespaces and processes that this process holds open."""
    found = []
    for file in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # the descriptor that listed them
            found.append(str(file.readlink()))
    return [
        link
        for link in found
        if link.startswith(("/", "user:", "mnt:", "anon_inode:")) and link != "/dev/null"
    ]


def open_places_beside(ready: str) -> list[str]:
    """As `open_places`, once the file `ready` is there."""
    while not Path(ready).exists():
        time.sleep(0.01)
    return open_places()


def cores() -> list[int]:
    """Those that a session may use."""
    return sorted(os.sched_getaffinity(0))


def sight(covered: str, code: str, secret: str) -> dict[str, object]:
    """What a session sees and may: in a covered directory, in one of the code, and of another's file."""
    new = uuid.uuid4().hex  # anybody may have made what has a name that is known before
    return {
        "entries": sorted(os.listdir(covered)),  # noqa: PTH208
        "environment": sorted(os.environ),
        "write": [error_of(lambda: open(f"{path}/{new}", "w")) for path in (covered, code, "/tmp")],  # noqa: B023, PTH123
        "uncover": error_of(lambda: umount(covered)),
        "read": error_of(lambda: open(secret)),  # noqa: PTH123
    }


def reach(secrets: list[str], sockets: list[str], libraries: str) -> dict[str, object]:
    """What a session can read, connect to, write into the place of compiled libraries, and raise its limit of
    processes to.
    """

    def connect(path: str) -> None:
        with socket.socket(socket.AF_UNIX) as mine:
            mine.connect(path)

    most = resource.getrlimit(resource.RLIMIT_NPROC)[1]
    return {
        "read": [error_of(lambda: open(path)) for path in secrets],  # noqa: B023, PTH123
        "connect": [error_of(lambda: connect(path)) for path in sockets],  # noqa: B023
        "library": error_of(lambda: open(f"{libraries}/row-products-0-0.so", "w")),  # noqa: PTH123
        "cache": os.path.relpath(libraries, os.environ["XDG_CACHE_HOME"]),
        "processes": most,
        "more": error_of(lambda: resource.setrlimit(resource.RLIMIT_NPROC, (most, most + 1))),
    }


def doors() -> dict[str, str]:
    """What the kernel says to sockets of families that no namespace divides, and to keys of the starter."""
    libc = ctypes.CDLL(None, use_errno=True)
    keyctl = {"x86_64": 250, "aarch64": 219}[platform.machine()]

    def calls(*arguments: object) -> None:
        if libc.syscall(*arguments) < 0:
            raise OSError(ctypes.get_errno(), "")

    def opens(family: str) -> None:
        kinds = {"AF_ALG": socket.SOCK_SEQPACKET, "AF_NETLINK": socket.SOCK_RAW}
        socket.socket(getattr(socket, family), kinds.get(family, socket.SOCK_DGRAM)).close()

    families = ("AF_VSOCK", "AF_ALG", "AF_UNIX", "AF_INET", "AF_NETLINK", "AF_PACKET")
    return {
        **{family: error_of(partial(opens, family)) for family in families},
        "keyring": error_of(lambda: calls(keyctl, 0, -3, 0)),  # the number of the session keyring: keyctl(2)
        "io_uring": error_of(lambda: calls(425, 1, ctypes.create_string_buffer(256))),
    }


def umount(path: str) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.umount2(path.encode(), 0):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def error_of(act: Callable[[], object]) -> str:
    try:
        act()
    except OSError as error:
        return errno.errorcode[error.errno or 0]
    except ValueError:  # of setrlimit, which tells no number
        return "EPERM"
    return ""


def real_time() -> tuple[int, int, str]:
    """The scheduling of this process once it has asked for real time, and that of its autogroup, if any."""
    from pathlib import Path

    run_in_real_time(os.getpid())
    group = Path("/proc/self/autogroup")
    niceness = os.getpriority(os.PRIO_PROCESS, 0)
    return os.sched_getscheduler(0), niceness, group.read_text() if group.exists() else ""


def main() -> None:
    """`python session_bodies.py SPEC.json READY`: own such a session."""
    import json
    from pathlib import Path

    from emulator.session.calls import call

    ready = Path(sys.argv[2])
    call(stay, json.loads(Path(sys.argv[1]).read_text()), str(ready), writes=(ready.parent,))


if __name__ == "__main__":
    from tests.support.session_bodies import (
        main as run,  # under its importable name, which the session needs too
    )

    run()
