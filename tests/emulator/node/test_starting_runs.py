"""A node that cannot start a run's process says why, and goes on."""

import asyncio
import errno
import json
import os
import subprocess

from emulator.node.runs import DEFAULT, NodeRuns
from engine.domain.node_messages import NodeClosed, NodeOpen, NodePass


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


async def test_what_a_run_has_left_whose_process_was_killed_goes_with_it(monkeypatch, tmp_path):
    async def send(message):
        if isinstance(message, NodePass):
            begun.set()

    begun = asyncio.Event()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    runs = NodeRuns(DEFAULT, send)
    await runs.take(NodeOpen(run="7-a"), "127.0.0.1")
    await runs.take(NodePass(run="7-a", text='{"type": "clock"}\n'), "127.0.0.1")
    await begun.wait()
    left = tmp_path / "edgeloom" / "node-runs"
    assert list(left.iterdir())
    runs.devices[0].process.kill()
    await runs.devices[0].pump
    assert not list(left.iterdir())
    await runs.end()


async def test_a_board_is_one_device_of_a_run_for_each_of_its_cores(monkeypatch, tmp_path):
    async def send(message):
        if isinstance(message, NodePass):
            answered[message.rank].set()
        else:
            closed.append((message.run, message.rank, message.why))

    answered, closed = {rank: asyncio.Event() for rank in (0, 3)}, []
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 1})
    runs = NodeRuns(DEFAULT, send)
    for rank in (0, 3):
        await runs.take(NodeOpen(run="7-a", rank=rank), "127.0.0.1")
        await runs.take(NodePass(run="7-a", rank=rank, text='{"type": "clock"}\n'), "127.0.0.1")
    await runs.take(NodeOpen(run="7-a", rank=4), "127.0.0.1")
    assert closed == [("7-a", 4, "it has 2 cores, and is one device for each")]
    for one in answered.values():
        await one.wait()
    assert runs.doing == "run 7-a"
    await runs.take(NodeClosed(run="7-a", rank=0), "127.0.0.1")
    assert runs.doing == "run 7-a" and list(runs.devices) == [3], "the other goes on"
    await runs.end()
    assert runs.doing == "" and not list((tmp_path / "edgeloom" / "node-runs").glob("*"))


async def test_a_board_that_can_keep_nothing_refuses_the_run_in_a_sentence(monkeypatch, tmp_path):
    async def send(message):
        if isinstance(message, NodePass):
            said.put_nowait(message.text)

    said = asyncio.Queue()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    (tmp_path / "edgeloom").mkdir()
    (tmp_path / "edgeloom" / "node-runs").write_text("a file where its folder would be")
    runs = NodeRuns(DEFAULT, send)
    await runs.take(NodeOpen(run="7-a"), "127.0.0.1")
    refused = json.loads(await said.get())
    await runs.end()
    assert refused["type"] == "refused" and "This board cannot keep what a run needs" in refused["sentence"]


async def test_a_run_of_which_a_board_has_not_heard_that_it_is_over_keeps_it_from_no_other(monkeypatch):
    async def send(message):
        said.append(message)

    said = []
    runs = NodeRuns(DEFAULT, send)
    await runs.take(NodeOpen(run="7-a"), "127.0.0.1")
    first = runs.devices[0].process
    await runs.take(NodeOpen(run="8-b"), "127.0.0.1")
    assert first.returncode is not None and runs.doing == "run 8-b"
    await runs.end()
    assert not any(isinstance(message, NodeClosed) for message in said)
