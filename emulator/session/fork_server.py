"""The process that sessions are forked from, so that what all of them import is imported once.

`forked` starts one for this process when it is first needed: a Python of its own with a session's
environment, which computes nothing and knows no secrets. It ends with this process, and by itself when nobody
has asked for a session for a while, since it needs some 250 MB with torch, and 400 with transformers.
"""

from __future__ import annotations

import atexit
import compileall
import contextlib
import gc
import importlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import traceback
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, NoReturn

from emulator.host.enter import Room, enter_or_end, raise_priority, room_from
from emulator.host.priority import STARTER_VARIABLE
from emulator.host.refused_calls import refuse_calls
from emulator.session.turns import INHERITED
from emulator.session.view import ROOT, SESSION_CODE
from engine.domain.errors import HostError

KEPT_S = 300.0
"""How long a server without sessions waits for the next request."""

LOOK_S = 0.1
"""How often it looks, while it imports, whether its owner is still there."""

MOST_BYTES, MOST_FILES = 1 << 17, 253
"""Of one request. The kernel refuses to send more files at once (unix(7)), and drops those that the receiver
has no room for.
"""

ATTEMPTS = 2
"""A server may end of old age just when it is asked; then a new one is."""


class Forked(NamedTuple):
    """A process that a server has forked; the file `ended` can be read once it has ended (pidfd_open(2))."""

    pid: int
    ended: int


# In the process that wants sessions ---------------------------------------------------------------
class ForkServer:
    """One server process, with this environment."""

    def __init__(self, environment: Mapping[str, str]):
        self.sock, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self.popen = subprocess.Popen(
                (sys.executable, "-c", f"from {__name__} import main; main({theirs.fileno()})"),
                env=environment,
                start_new_session=True,
                pass_fds=(theirs.fileno(),),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
            )
        for (
            name
        ) in SESSION_CODE:  # sessions cannot write the checkout, and would each compile what has changed
            compileall.compile_dir(ROOT / name, quiet=2)

    def ask(self, request: bytes, files: Sequence[int]) -> Forked | None:
        """Ask the server to fork a session; None if it has ended."""
        try:
            socket.send_fds(self.sock, [request], files)
            answer, descriptors, _, _ = socket.recv_fds(self.sock, MOST_BYTES, 1)
        except (BrokenPipeError, ConnectionResetError):
            return None
        return Forked(int(answer), descriptors[0]) if answer else None

    def tell(self, request: bytes) -> None:
        """Send the server a request without an answer; nothing happens if it has ended."""
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self.sock.send(request)

    def close(self) -> None:
        """End the server, and its sessions with it."""
        self.sock.close()
        self.popen.kill()
        self.popen.wait()


_servers: dict[str, ForkServer] = {}
_lock = threading.Lock()


def forked(module: str, room: Room, environment: Mapping[str, str], files: Sequence[int]) -> Forked:
    """A new process that enters `room` and calls `main` of `module`, with this environment.

    `files` are one for its output, its end of a socket, whose number `main` gets, its end of another to its
    starter (`priority.py`), and what else it is to hold. Raises `HostError` if the server cannot work.
    """
    request = json.dumps(
        {"module": module, "room": json.dumps(room._asdict()), "environment": dict(environment)}
    )
    with _lock:
        for _ in range(ATTEMPTS):
            server = _server(environment)
            answer = server.ask(request.encode(), files)
            if answer is not None:
                return answer
            _servers.pop(environment["PYTHONPATH"]).close()
    raise HostError(
        f"The process that starts emulations has ended twice, with status {server.popen.returncode}."
    )


def prepare(module: str, environment: Mapping[str, str], many: bool, urgent: bool = False) -> None:
    """Let the server import now all that sessions of `module` need, so that the next one starts at once; for
    `many` also what they need last, `NEEDED_LAST` of the module, name by name while there is no session. With
    `urgent`, as somebody waits for that session, with its priority.
    """
    request = {"module": module, "many": many, "urgent": urgent}
    with _lock:
        _server(environment).tell(json.dumps(request).encode())


def servers() -> tuple[int, ...]:
    """The processes that sessions of this one are forked from."""
    return tuple(server.popen.pid for server in _servers.values())


def _server(environment: Mapping[str, str]) -> ForkServer:
    place = environment["PYTHONPATH"]
    if place not in _servers:
        _servers[place] = ForkServer(environment)
    return _servers[place]


def _forget() -> None:
    """Forget the servers in a process that was forked from this one: they are not its own."""
    global _lock
    _lock = threading.Lock()
    while _servers:
        _, server = _servers.popitem()
        server.sock.close()
        server.popen.returncode = 0  # nobody waits for it here


def _end() -> None:
    while _servers:
        _servers.popitem()[1].close()


atexit.register(_end)
os.register_at_fork(after_in_child=_forget)


# In the server ------------------------------------------------------------------------------------
def main(descriptor: int) -> None:
    """Serve one process until it ends, or asks for nothing while no session goes on."""
    owner = os.getppid()
    sessions: dict[int, int] = {}
    asked: Counter[str] = Counter()
    idly: deque[str] = deque()
    with socket.socket(fileno=descriptor) as sock:
        while True:
            watched = [sock.fileno(), *sessions]
            patience_s = None if sessions else 0.0 if idly else KEPT_S
            ready, _, _ = select.select(watched, [], [], patience_s)
            for ended in sessions.keys() & set(ready):
                os.waitpid(sessions.pop(ended), 0)
                os.close(ended)
            if not ready and idly:
                with ended_with(owner):
                    load(idly.popleft())
                continue
            if not ready:
                return
            if sock.fileno() not in ready:
                continue
            text, files, _, _ = socket.recv_fds(sock, MOST_BYTES, MOST_FILES)
            if not text:  # its owner has ended; to end in order takes long with all that is imported
                os._exit(0)
            request = json.loads(text)
            asked[request["module"]] += 1
            if request.get("urgent"):
                raise_priority()
            with ended_with(owner):
                load(request["module"], whole="room" not in request or asked[request["module"]] > 1)
            if "room" not in request:
                if request["many"]:
                    idly.extend(getattr(sys.modules.get(request["module"]), "NEEDED_LAST", ()))
                continue
            parent = os.getpid()
            pid = os.fork()
            if not pid:
                sock.close()
                for other in sessions:
                    os.close(other)
                run(request, parent, files)
            ended = os.pidfd_open(pid)
            sessions[ended] = pid
            for file in files:
                os.close(file)
            with contextlib.suppress(BrokenPipeError):
                socket.send_fds(sock, [str(pid).encode()], [ended])


@contextlib.contextmanager
def ended_with(owner: int) -> Iterator[None]:
    """End this process, and so its sessions, soon after its parent `owner` also while it does not listen.

    The kernel's own signal would come at the end of the thread that has started it.
    """

    def look(*_: object) -> None:
        if os.getppid() != owner:
            os._exit(0)

    before = signal.signal(signal.SIGALRM, look)
    signal.setitimer(signal.ITIMER_REAL, LOOK_S, LOOK_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def load(name: str, whole: bool = False) -> None:
    """Import a module of sessions and, for the `whole`, what it uses late: of a process that wants only one,
    that session imports it, beside its other work. What cannot be imported, the session tells.
    """
    with contextlib.suppress(Exception):
        module = importlib.import_module(name)
        if whole:
            getattr(module, "preload", lambda: None)()
    gc.freeze()  # a collection in a session would copy the pages of all this


def run(request: dict[str, Any], parent: int, files: Sequence[int]) -> NoReturn:
    """Turn this process into the session."""
    status = 1
    try:
        os.setsid()
        output, mine, starter, *turn = files
        for standard in (1, 2):
            os.dup2(output, standard)
        os.environ.clear()
        held = {STARTER_VARIABLE: str(starter), INHERITED: " ".join(map(str, turn))}
        os.environ.update(request["environment"] | held)
        tempfile.tempdir = None  # what the server has imported may have asked where it could write
        enter_or_end(room_from(request["room"])._replace(parent=parent))
        refuse_calls()
        importlib.import_module(request["module"]).main(mine)
        status = 0
    except BaseException:  # nothing of the server may go on in this process
        traceback.print_exc()
    sys.stderr.flush()
    os._exit(status)
