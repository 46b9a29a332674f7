"""Starts a child process in its own network, mount and process namespaces; it is killed with its parent.

When it ends, the kernel removes everything inside: processes, interfaces, mounts. Names inside cannot collide
with names outside, so several emulations and other Mininets can run at the same time.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from types import TracebackType

from emulator.host.leftovers import Process, children, kill, process, record
from emulator.session.turns import Turn

ROOT = Path(__file__).resolve().parents[2]
UNSHARE = ("unshare", "--net", "--mount", "--pid", "--fork", "--mount-proc", "--kill-child=SIGKILL")
ENTER_GROUP = 'echo $$ > "$0" && exec "$@"'
"""A shell that joins the control group $0 and becomes the command that follows."""
BUFFER_BYTES = 4 << 20
SO_SNDBUFFORCE = 32  # asm-generic/socket.h; beyond the system's limit, which root may
TAIL_BYTES = 2000


class Isolated:
    """Runs `python -m MODULE FD` in new namespaces; `sock` is connected to its file descriptor FD.

    It inherits the files of `turn`, so the turn ends with its last process, and may use only the turn's
    cores. `group` is the file of a control group that takes its pid, if there is one.
    """

    def __init__(self, module: str, records: Path, turn: Turn, group: Path | None = None):
        self.module = module
        self.group = group
        self.records = records
        self.turn = turn

    def __enter__(self) -> Isolated:
        self.sock, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        for end in (self.sock, theirs):
            end.setsockopt(socket.SOL_SOCKET, SO_SNDBUFFORCE, BUFFER_BYTES)
        self.errors = tempfile.TemporaryFile()
        python = (sys.executable, "-m", self.module, str(theirs.fileno()))
        confine = ("taskset", "--cpu-list", ",".join(map(str, sorted(self.turn.cores))))
        member = () if self.group is None else ("sh", "-c", ENTER_GROUP, str(self.group))
        line = ("setpriv", "--pdeathsig", "KILL", *member, *confine, *UNSHARE, *python)
        # One thread per process: many devices share few cores, and pacing times single threads.
        environment = os.environ | {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
        # Import from where this process imports, and nothing from the current directory.
        paths = [str(ROOT), *(path for path in sys.path if path)]
        environment |= {"PYTHONPATH": os.pathsep.join(paths), "PYTHONSAFEPATH": "1"}
        with theirs:
            self.popen = subprocess.Popen(
                line,
                env=environment,
                start_new_session=True,
                pass_fds=(theirs.fileno(), *self.turn.descriptors),
                stdin=subprocess.DEVNULL,
                stdout=self.errors,
                stderr=self.errors,
            )
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
        self.popen.wait()
        self.record.unlink(missing_ok=True)
        self.sock.close()
        self.errors.close()

    def members(self) -> list[Process]:
        """The process that called unshare, and the init of the namespaces; the kernel kills the others with
        it.
        """
        outer = process(self.popen.pid)
        return [] if outer is None else [outer, *children(self.popen.pid)]

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
        members = self.members() or [Process(self.popen.pid, 0)]
        return record(self.records, owner, members)
