"""The commands of EdgeLoom's processes, as data; the same with and without containers.

The supervisor, `./loom worker` and the test of docker-compose.yml read them.
"""

from __future__ import annotations

import os
from typing import NamedTuple

HOST = "127.0.0.1"
PORT = 8000
REDIS_PORT = 6391

WORKER_ARGUMENTS: dict[str, tuple[str, ...]] = {
    "plan": ("-Q", "plan", "-n", "plan@%h", "--pool", "prefork", "--concurrency", "2"),
    # As many processes as there are cores, each replaced once it has grown. They have a lower priority.
    "points": ("-Q", "points", "-n", "points@%h", "--pool", "prefork", "--max-memory-per-child", "600000"),
    # A thread beside the main one: the run itself is a child process, the thread only watches it,
    # and the main thread stays free for the connection to Redis and for signals.
    # LOOM_RUNS_AT_ONCE allows more than one at once, each on its share of the cores.
    "emulate": (
        "-Q",
        "emulate",
        "-n",
        "emulate@%h",
        "--pool",
        "threads",
        "--concurrency",
        os.environ.get("LOOM_RUNS_AT_ONCE", "1"),
    ),
}
"""What follows `celery -A webapp.celery worker` for each queue."""

QUEUES = tuple(WORKER_ARGUMENTS)
SHARED_SETTINGS = ("REDIS_URL", "DATABASE_URL")
"""The environment variables by which processes on several machines become one EdgeLoom."""


class Service(NamedTuple):
    """A process: its arguments after `python`, whichever Python that is."""

    name: str
    arguments: tuple[str, ...]
    makes_namespaces: bool = False
    """Whether it makes namespaces: in a container it needs root and the host's capabilities for that."""

    @property
    def kind(self) -> str:
        """The user of Redis that it is: `web`, or a worker's queue."""
        return self.name.removeprefix("worker-")


def web(host: str = HOST, port: int = PORT) -> Service:
    return Service(
        "web",
        (
            "-m",
            "webapp.http.server",
            "webapp.asgi:application",
            "--host",
            host,
            "--port",
            str(port),
            # With X-Forwarded-For a program on this machine could claim any address: a proxy's setting.
            "--no-proxy-headers",
            # Browsers keep their WebSockets open: a stop must not wait for them.
            "--timeout-graceful-shutdown",
            "3",
            # Each of 200 viewers of a run would have the same events compressed for itself.
            "--ws-per-message-deflate",
            "false",
            # Browsers say nothing, and nodes at most so much (`engine/domain/node_messages.py`).
            "--ws-max-size",
            "1048576",
        ),
    )


def worker(queue: str) -> Service:
    arguments = (
        "-m",
        "celery",
        "-A",
        "webapp.celery",
        "worker",
        *WORKER_ARGUMENTS[queue],
        # Workers need nothing from one another; asking for others would take a second at each start. They
        # announce themselves in Redis (`webapp/jobs/announcement.py`).
        "--without-gossip",
        "--without-mingle",
        "--without-heartbeat",
        "--loglevel",
        "INFO",
    )
    return Service(f"worker-{queue}", arguments, makes_namespaces=queue == "emulate")
