"""The servers of a trial on their own ports: Redis with a password, SQLite or PostgreSQL, a small disk."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import sqlite3
import subprocess
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from webapp.ops.debian import POSTGRESQL_DIR
from webapp.ops.places import OpsError
from webapp.ops.redis_server import RedisServer, free_port, redis_program

START_S = 180.0
"""Seconds to wait for a server. It is patience, not a measurement: other programs may have the cores."""
DISK_BYTES = {"sqlite": 16_000_000, "postgresql": 96_000_000}


def wait_for(condition: Callable[[], bool], what: str) -> None:
    """Wait until `condition` holds. Raises `OpsError` after `START_S`."""
    until_s = time.monotonic() + START_S
    while not condition():
        if time.monotonic() > until_s:
            raise OpsError(f"{what} does not answer after {START_S:.0f} s.")
        time.sleep(0.02)


class Redis:
    """A Redis with a password and nothing on disk: when it starts again it is empty. It listens at `bind`
    too.
    """

    def __init__(self, directory: Path, bind: str = ""):
        self.server = RedisServer(free_port(), "trial", directory / "redis.sock")
        self.configuration = directory / "redis.conf"
        more = f"bind {bind}\n" if bind else ""
        self.configuration.write_text(self.server.configuration() + f"dir {directory}\n{more}")
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        self.process = subprocess.Popen([redis_program(), str(self.configuration)], stdout=subprocess.DEVNULL)
        wait_for(self.server.answers, "Redis")

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None


class Disk:
    """A file system of a few megabytes in memory, mounted for this process and its children."""

    def __init__(self, directory: Path, size_bytes: int):
        self.directory = directory
        self.filler = directory / "filler"
        directory.mkdir()
        options = f"size={size_bytes},mode=755"
        mount = ("mount", "-t", "tmpfs", "-o", options, "edgeloom-trial", str(directory))
        subprocess.run(mount, check=True)

    def fill(self) -> None:
        with self.filler.open("ab", buffering=0) as file:
            for size in (1 << 20, 1 << 12, 1):
                try:
                    while True:
                        file.write(bytes(size))
                except OSError as error:
                    if error.errno != errno.ENOSPC:
                        raise

    def free(self) -> None:
        self.filler.unlink(missing_ok=True)


class Database(Protocol):
    url: str

    def start(self) -> None: ...

    def disturb(self) -> None:
        """Let nobody write from now on, until `mend`."""

    def mend(self) -> None: ...

    def retry(self) -> None:
        """What could not be mended may be now: the disk has room again."""

    def stop(self) -> None: ...


class Sqlite:
    """A file; somebody who holds its lock disturbs it."""

    def __init__(self, directory: Path):
        self.file = directory / "trial.sqlite3"
        self.url = f"sqlite:///{self.file}"
        self.holder: sqlite3.Connection | None = None
        self.lock = threading.Lock()

    def start(self) -> None:
        """The file is made when it is first used."""

    def disturb(self) -> None:
        with self.lock:
            if self.holder is None:
                holder = sqlite3.connect(self.file, isolation_level=None, timeout=1, check_same_thread=False)
                with suppress(sqlite3.OperationalError):  # a paused worker has the lock already
                    holder.execute("BEGIN IMMEDIATE")
                self.holder = holder

    def mend(self) -> None:
        with self.lock:
            if self.holder is not None:
                self.holder.close()
                self.holder = None

    def retry(self) -> None:
        """Do nothing: SQLite needs no start."""

    def stop(self) -> None:
        self.mend()


class Postgresql:
    """A server whose log of changes is not on the small disk: a full one refuses what makes tables grow.

    With a password it listens at all addresses, and asks everybody for it.
    """

    def __init__(self, directory: Path, disk: Path, password: str = ""):
        versions = list(POSTGRESQL_DIR.glob("*/bin"))
        if not versions:
            raise OpsError("PostgreSQL is missing: install Debian's package postgresql.")
        self.programs = max(versions, key=lambda path: float(path.parent.name))
        self.port = free_port()
        who = f"loom:{password}" if password else "loom"
        self.url = f"postgres://{who}@127.0.0.1:{self.port}/postgres"
        self.password = password
        self.directory, self.data = directory, disk / "data"
        self.process: subprocess.Popen[bytes] | None = None
        self.wanted = False
        for path in (directory, disk):
            shutil.chown(path, "postgres")
        initdb = (self.programs / "initdb", "--pgdata", self.data, "--waldir", directory / "wal")
        secret = directory / "password"
        secret.write_text(password)
        shutil.chown(secret, "postgres")
        known = ("--auth", "scram-sha-256", "--pwfile", secret) if password else ("--auth", "trust")
        asked = ("--username", "loom", *known, "--no-sync", "--wal-segsize", "1")
        subprocess.run(
            [*initdb, *asked], check=True, user="postgres", cwd=directory, stdout=subprocess.DEVNULL
        )
        if password:
            with (self.data / "pg_hba.conf").open("a") as rules:
                rules.write("host all all 10.0.0.0/8 scram-sha-256\n")

    def start(self) -> None:
        listen = "*" if self.password else "127.0.0.1"
        options = ("-c", f"listen_addresses={listen}", "-c", "fsync=off", "-c", "max_connections=200")
        line = (self.programs / "postgres", "-D", self.data, "-p", str(self.port), "-k", self.directory)
        log = (self.directory / "postgresql.log").open("ab")
        self.process = subprocess.Popen(
            [*line, *options], user="postgres", cwd=self.directory, stdout=log, stderr=log
        )
        self.wanted = True
        wait_for(lambda: self._has_ended() or self._answers(), "PostgreSQL")

    def _has_ended(self) -> bool:
        """Whether the server has ended: it does not start while the disk is full."""
        if self.process is not None and self.process.poll() is not None:
            self.process = None
        return self.process is None

    def _answers(self) -> bool:
        asked = (self.programs / "pg_isready", "-q", "-h", "127.0.0.1", "-p", str(self.port))
        return subprocess.run(asked).returncode == 0

    def disturb(self) -> None:
        self.stop(signal.SIGQUIT)

    def mend(self) -> None:
        if self._has_ended():
            self.start()

    def retry(self) -> None:
        if self.wanted:
            self.mend()

    def stop(self, how: int = signal.SIGINT) -> None:
        self.wanted = False
        if self.process is not None:
            os.kill(self.process.pid, how)
            self.process.wait()
            self.process = None
