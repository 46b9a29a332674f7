"""Starts a process in a room of its own (`emulator/host/enter.py`); it is killed with its starter.

When it ends, the kernel removes everything inside: processes, interfaces, mounts. Names inside cannot collide
with names outside, so several emulations and other Mininets can run at the same time.
"""

from __future__ import annotations

import contextlib
import os
import select
import socket
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType

from emulator.host.enter import SCRATCH
from emulator.host.leftovers import Process, children, kill, process, record
from emulator.host.places import search_path
from emulator.host.priority import grant_real_time
from emulator.host.rights import rights
from emulator.session import fork_server
from emulator.session.turns import Turn
from emulator.session.view import ROOT, room_of, session_cache
from engine.ops.torch_kernels.row_library import LIBRARY_VARIABLE, folder, library, make_library
from engine.plugins.installed import VARIABLES

KEPT = (
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "LD_LIBRARY_PATH",
    *VARIABLES,
    "LOOM_READY_S",
    "LOOM_RUNS_AT_ONCE",
    "LOOM_TRIAL_DIRECTORY",
    "TZ",
)
"""The variables of the environment that a session gets from its starter, whose others may hold secrets."""

BUFFER_BYTES = 4 << 20
SO_SNDBUFFORCE = 32  # asm-generic/socket.h; beyond the system's limit, which root may
TAIL_BYTES = 2000
AFTERWARDS = -10
"""The niceness of what a session still does when its clock has ended: behind other sessions, and before what
else this machine does, since somebody waits for it.
"""


class Isolated:
    """Runs `main(FD)` of MODULE in a room of its own; `sock` is connected to its file descriptor FD.

    It inherits the files of `turn`, so the turn ends with its last process, and may use only the turn's
    cores. `group` is the file of a control group that takes its pid, if there is one. It may read the
    directories `reads` and write `writes`, wherever they are. Without `own_network` it has this machine's.
    """

    def __init__(
        self,
        module: str,
        records: Path,
        turn: Turn,
        group: Path | None = None,
        reads: Iterable[Path] = (),
        writes: Iterable[Path] = (),
        own_network: bool = True,
    ):
        self.module = module
        self.group = group
        self.records = records
        self.turn = turn
        self.own_network = own_network
        self.reads, self.writes = tuple(reads), tuple(writes)

    def __enter__(self) -> Isolated:
        rights().require()
        self.sock, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        self.starter, asks = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        for end in (self.sock, theirs):
            _widen(end)
        granting = grant_real_time(self.starter)
        self.errors = tempfile.TemporaryFile()
        cache = session_cache()
        make_library()
        reads = (*self.reads, folder())
        room = room_of(self.turn.cores, self.group, reads, (*self.writes, cache), self.own_network)
        files = (self.errors.fileno(), theirs.fileno(), asks.fileno(), *self.turn.descriptors)
        with theirs, asks:
            self.pid, self.ended = fork_server.forked(self.module, room, _environment(cache), files)
        self.granting = granting
        self.record = self._record()
        return self

    def note_members(self) -> None:
        """Add the init process to the record once it runs, so that a later start can end it after a crash."""
        self.record = self._record()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for member in self.members():
            kill(member)
        select.select([self.ended], [], [])
        os.close(self.ended)
        self.record.unlink(missing_ok=True)
        self.granting.join()
        self.starter.close()
        self.sock.close()
        self.errors.close()

    def members(self) -> list[Process]:
        """The process that entered the room, and the init of its namespaces; the kernel kills the others with
        it.
        """
        outer = process(self.pid)
        return [] if outer is None else [outer, *children(self.pid)]

    def step_back(self) -> None:
        """Let other sessions go before it from now on: in it no clock goes on any more."""
        with contextlib.suppress(OSError):  # a kernel without autogroups, or a user who may not
            Path(f"/proc/{self.pid}/autogroup").write_text(str(AFTERWARDS))

    def complaint(self) -> str:
        """The last bytes of the child's standard error, which usually say why it ended."""
        self.errors.seek(max(0, self.errors.seek(0, os.SEEK_END) - TAIL_BYTES))
        return self.errors.read().decode(errors="replace").strip()

    def last_words(self) -> str:
        """The last line of `complaint()`."""
        lines = self.complaint().splitlines()
        return lines[-1].rstrip(".") if lines else "it was killed"

    def _record(self) -> Path:
        owner = process(os.getpid())
        assert owner is not None, "this process is alive"
        members = self.members() or [Process(self.pid, 0)]
        return record(self.records, owner, members)


def prepare(module: str, many: bool, urgent: bool = False) -> None:
    """Begin to import what sessions of `module` need, in a process that is kept for a while."""
    fork_server.prepare(module, _environment(session_cache()), many, urgent)


def _environment(cache: Path) -> dict[str, str]:
    kept = {name: os.environ[name] for name in KEPT if name in os.environ}
    return kept | {
        "HOME": SCRATCH,
        "PATH": search_path(),
        "TMPDIR": SCRATCH,
        "XDG_CACHE_HOME": str(cache.parent),
        LIBRARY_VARIABLE: str(library() or ""),
        # One thread per process: many devices share few cores, and pacing times single threads.
        "OMP_NUM_THREADS": "1",
        "MKL_NUM_THREADS": "1",
        # Import from where this process imports, and nothing from the current directory.
        "PYTHONPATH": os.pathsep.join([str(ROOT), *(path for path in sys.path if path)]),
        "PYTHONSAFEPATH": "1",
    }


def _widen(end: socket.socket) -> None:
    """Enlarge the buffer; only root may exceed the system's limit."""
    for option in (socket.SO_SNDBUF, SO_SNDBUFFORCE):
        with contextlib.suppress(PermissionError):
            end.setsockopt(socket.SOL_SOCKET, option, BUFFER_BYTES)
