"""A node that cannot start a run's process says why, and goes on."""

import errno
import os
import subprocess

from emulator.node.runs import DEFAULT, NodeRuns
from engine.domain.node_messages import NodeClosed, NodeOpen


async def test_a_board_without_processes_left_refuses_the_run_and_stays_a_node(monkeypatch):
    def fails(*command, **options):
        raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))

    async def send(message):
        said.append(message)

    said = []
    monkeypatch.setattr(subprocess, "Popen", fails)
    runs = NodeRuns(DEFAULT, send)
    await runs.take(NodeOpen(run="7-a"), "127.0.0.1")
    why = "it cannot start a process (Resource temporarily unavailable)"
    assert said == [NodeClosed(run="7-a", why=why)] and runs.doing == ""
