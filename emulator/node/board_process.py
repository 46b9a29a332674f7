"""A run's process on a board, started by the node (`runs.py`).

Its socket leads through the server to the run's supervisor. It answers questions on this board, fetches the
slices of the plan, and forks the one thing that it runs, our device process. It ends with the connection, and
removes what the run has left.
"""

from __future__ import annotations

import base64
import contextlib
import math
import os
import resource
import select
import shutil
import signal
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from ipaddress import ip_address
from pathlib import Path
from types import FrameType
from typing import Any

from emulator.calibration.known import known_calibration
from emulator.node.links import be_probed, probe
from emulator.node.run_folders import own_folder, remove_leftovers
from emulator.node.slice_cache import MOST_CACHE_BYTES, SliceCache, why
from emulator.session.wire import JsonLines
from engine.domain.errors import EdgeLoomError, RunError
from engine.domain.network import LoopbackNetwork, PairMeasurement
from engine.domain.parent import end_with
from engine.domain.plan import Plan
from engine.domain.spec import RunSpec
from engine.domain.workload import Request
from engine.experiments.execution.version import code_version
from engine.runs.children import Child, fork_device
from engine.runs.fits import available_bytes
from engine.runs.host_kernels import use_host_kernels
from engine.worlds.real.device_process import Assignment

PIECE_BYTES = 1 << 18
SLICES = "slices"
ALIVE_S = 1.0
SERVER_S = 60.0
"""How long it waits for a piece of the weights."""
MOST_MESSAGE_BYTES = 128 << 20
"""Of what the server says at once: a plan has some megabytes, a request's picture some more."""
MOST_PROBES, MOST_PROBES_AT_ONCE = 1000, 4
"""Measurements of links in one run, of which a server asks one after another."""
MOST_FILE_BYTES = 1 << 30
"""Of each file that a run writes here, besides slices: what the server takes of results."""

NOT_OURS = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, RecursionError)
"""What messages end in that are none of an EdgeLoom: without a field, or with one of another kind."""

Message = dict[str, Any]


class Here(LoopbackNetwork):
    """This board as the network of its device process: it listens at one address."""

    def __init__(self, spec: RunSpec, address: str):
        super().__init__(spec.cluster)
        self.listens_at = address

    def address(self, rank: int) -> str:
        return self.listens_at


class HungUp(Exception):
    """The run is over for this board: its connection has ended."""


def refuse(lines: JsonLines, sentence: str) -> None:
    """Say why this board has no part in the run, and stay until that has read it."""
    lines.send({"type": "refused", "sentence": sentence})
    while not lines.closed:
        with contextlib.suppress(EdgeLoomError, *NOT_OURS):
            lines.receive(ALIVE_S)


class BoardProcess:
    def __init__(self, lines: JsonLines, address: str, cache_bytes: int, memory_bytes: int):
        self.lines, self.address = lines, address
        self.cache = SliceCache(cache_bytes, self.log, self._answer_meanwhile)
        self.memory_bytes = min(memory_bytes, available_bytes())
        self.waiting: list[Message] = []
        self.held: list[Message] = []
        self.probes: list[threading.Thread] = []
        self.probed = 0
        self.child: Child | None = None

    def run(self, results: Path) -> None:
        """Serve the supervisor until it hangs up."""
        with contextlib.suppress(HungUp):
            try:
                while self.child is None:
                    self._handle(self._next(), results)
                self._serve(self.child, results)
            except EdgeLoomError as error:
                refuse(self.lines, str(error))
            except ConnectionError:
                raise
            except OSError as error:
                refuse(self.lines, f"This board cannot keep what a run needs: {why(error)}.")
            except NOT_OURS as error:
                what = f"{type(error).__name__}: {str(error)[:100]}"
                refuse(self.lines, f"The server says what no EdgeLoom does ({what}).")

    def log(self, line: str) -> None:
        self.lines.send({"type": "log", "lines": [line]})

    def _next(self, timeout_s: float = 1e6) -> Message:
        until_s = time.monotonic() + timeout_s
        while not self.waiting:
            if self.lines.closed:
                raise HungUp
            if time.monotonic() > until_s:
                raise RunError(f"The server has said nothing for {timeout_s:.0f} s.")
            self.waiting += self.lines.receive(ALIVE_S)
        return self.waiting.pop(0)

    def _handle(self, message: Message, results: Path) -> None:
        match message["type"]:
            case "who":
                self.address = self.address or _address_toward(message["toward"])
                free = {"available_bytes": self.memory_bytes, "address": self.address}
                known = known_calibration()
                device = known.as_in_runs().device if known else None
                row = device.model_dump(mode="json", exclude_defaults=True) if device else None
                self.lines.send(
                    {"type": "hello", "version": code_version(on_shapes=False), "row": row, **free}
                )
            case "clock":
                self.lines.send({"type": "clock", "at_s": time.monotonic()})
            case "be_probed":
                self._count_probe()
                port, thread = be_probed(self.address, bytes.fromhex(message["key"]))
                self.probes.append(thread)
                self.lines.send({"type": "probing", "port": port})
            case "probe":
                self._count_probe()
                key = bytes.fromhex(message["key"])
                found = probe(message["address"], message["port"], key)
                self.lines.send({"type": "probed", **found._asdict()})
            case "assign":
                self._assign(message, results)
            case "exit":
                raise HungUp

    def _count_probe(self) -> None:
        self.probed += 1
        self.probes = [thread for thread in self.probes if thread.is_alive()]
        if self.probed > MOST_PROBES or len(self.probes) >= MOST_PROBES_AT_ONCE:
            raise RunError(
                f"The server asks for more than {MOST_PROBES} measurements of links, or for more than "
                f"{MOST_PROBES_AT_ONCE} at once."
            )

    def _assign(self, message: Message, results: Path) -> None:
        spec = RunSpec.parse(message["spec"], "the run")
        if spec.method is not None or spec.model.draft is not None:
            raise RunError("The run has a method from outside or a draft model: a board takes neither.")
        if spec.weights.directory or spec.draft_weights.directory:
            raise RunError("The server names a folder of its own for weights: a board reads slices alone.")
        rank, ahead_s, key = int(message["rank"]), float(message["ahead_s"]), bytes.fromhex(message["key"])
        if rank not in range(len(spec.cluster.devices)) or not math.isfinite(ahead_s):
            raise RunError(f"The server says that this board is device {rank}, {ahead_s} s behind it.")
        plan = Plan.parse(message["plan"], "the plan")
        requests = tuple(Request.parse(request, "a request") for request in message["requests"])
        source = None
        if spec.weights.kind == "directory":
            from emulator.session.slices import SliceFiles

            (results / SLICES).mkdir()
            source = SliceFiles(results / SLICES)
        self._fetch(message["files"], results)
        for thread in self.probes:  # a process with threads should not be forked
            thread.join()
        use_host_kernels()  # those that the board was measured with
        _have_clock_of_server(ahead_s)
        here = Here(spec, self.address)
        beside = tuple(int(one) for one in message["beside"])
        most_bytes = min(self.memory_bytes, max(0, int(message["memory_bytes"])))
        pairs = tuple(_pair(pair, len(spec.cluster.devices)) for pair in message["given"])
        paced = message["paced"] is True
        given = Assignment(spec, plan, requests, here, paced, results, source, key, beside, pairs)
        self.child = fork_device(rank, spec.cluster.devices[rank].name, given, ())
        _limit(self.child.pid, most_bytes)

    def _fetch(self, files: Sequence[Sequence[Any]], results: Path) -> None:
        """Have these slices where the device process looks for them; what comes meanwhile waits."""
        if files and not (results / SLICES).exists():
            raise RunError("The server sends slices of weights for a run whose weights are drawn here.")
        paths = self.cache.fetch([(digest, size) for digest, size in files], self._ask)
        for path in paths:
            with contextlib.suppress(FileExistsError):  # of the plan before
                _link(results / SLICES / path.name, path)
        self.waiting = self.held + self.waiting
        self.held = []

    def _answer_meanwhile(self) -> None:
        """Answer the supervisor while slices are read: it ends a board that is silent."""
        if self.lines.closed:
            raise HungUp
        self.waiting += self.lines.receive(0)
        while self.waiting:
            self._put_off(self.waiting.pop(0))

    def _put_off(self, message: Message) -> None:
        """Keep a message until the slices are here, but answer what cannot wait."""
        match message["type"]:
            case "ping":
                self.lines.send({"type": "pong", "served_s": 0.0})
            case "exit":
                raise HungUp
            case _:
                self.held.append(message)

    def _ask(self, digest: str, start: int) -> str:
        self.lines.send({"type": "need", "digest": digest, "start": start})
        while True:
            message = self._next(SERVER_S)
            if message["type"] == "piece" and (message["digest"], message["start"]) == (digest, start):
                return str(message["data"])
            self._put_off(message)

    def _serve(self, child: Child, results: Path) -> None:
        """Pass messages on between the supervisor and the device process until either has ended."""
        self._pass_on(child, results)
        while not self.lines.closed:
            watched: list[Any] = [self.lines.sock, child.sock, *filter(None, [child.output])]
            ready, _, _ = select.select(watched, [], [])
            if child.output in ready:
                self._pass_output(child)
            if child.sock in ready:
                said = child.receive()
                if said is None:
                    self._pass_output(child)
                    self.lines.send({"type": "ended", "words": child.how_ended()})
                    return
                for message in said:
                    if message["type"] in ("finished", "stuck"):
                        self._send_results(results)
                    self.lines.send(message)
            if self.lines.sock in ready:
                self.waiting += self.lines.receive(0)
                self._pass_on(child, results)

    def _pass_on(self, child: Child, results: Path) -> None:
        """Pass on what the supervisor has said; a new plan once its slices are here."""
        while self.waiting:
            message = self.waiting.pop(0)
            if message["type"] == "stacks":
                child.signal(signal.SIGUSR1)
                continue
            if message["type"] == "resume":
                self._fetch(message.pop("files"), results)
            child.send(**message)

    def _pass_output(self, child: Child) -> None:
        if child.output is None:
            return
        lines, open_ = child.output.read()
        if lines:
            self.lines.send({"type": "log", "lines": lines})
        if not open_:
            child.output.close()
            child.output = None

    def _send_results(self, results: Path) -> None:
        for path in (*results.glob("outputs.safetensors"), *results.glob("pieces-*.safetensors")):
            content = path.read_bytes()
            for at in range(0, len(content), PIECE_BYTES):
                data = base64.b64encode(content[at : at + PIECE_BYTES]).decode()
                self.lines.send({"type": "file", "name": path.name, "start": at, "data": data})

    def end(self) -> None:
        if self.child is not None:
            self.child.kill()
            with contextlib.suppress(ChildProcessError):
                os.waitpid(self.child.pid, 0)


def _address_toward(other: str) -> str:
    """Where a board at this address may connect to this machine. Raises `RunError`."""
    try:
        kind = socket.AF_INET6 if ip_address(other).version == 6 else socket.AF_INET
        with socket.socket(kind, socket.SOCK_DGRAM) as sock:
            sock.connect((other, 9))  # sends nothing
            return str(sock.getsockname()[0])
    except (ValueError, OSError) as error:
        raise RunError(f"No way leads from here to the board at {other[:60]!r} ({error}).") from error


def _pair(said: Sequence[float], devices: int) -> PairMeasurement:
    """What the server says that the network gives between two devices. Raises `RunError`."""
    src, dst, bit_per_s, delay_s, loss_frac = said
    ends = int(src), int(dst)
    if not set(ends) <= set(range(devices)) or not (0 < bit_per_s < math.inf and 0 <= delay_s < math.inf):
        raise RunError(f"The server says that the network gives {said} between two devices.")
    return PairMeasurement(*ends, float(bit_per_s), float(delay_s), float(loss_frac))


def _link(at: Path, path: Path) -> None:
    """Have the file at another place, too: by a symbolic link where its file system allows no other."""
    try:
        at.hardlink_to(path)
    except FileExistsError:
        raise
    except OSError:
        at.symlink_to(path.resolve())


def _limit(pid: int, memory_bytes: int) -> None:
    """Let the kernel refuse this device process, just forked, more memory than this, besides what is there
    already, and files that are larger than results may be. This process keeps larger ones: slices.
    """
    data_pages = int(Path("/proc/self/statm").read_text().split()[5])
    most = data_pages * resource.getpagesize() + memory_bytes
    with contextlib.suppress(ProcessLookupError):  # it has ended, which its socket says
        resource.prlimit(pid, resource.RLIMIT_DATA, (most, most))
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (MOST_FILE_BYTES, MOST_FILE_BYTES))


def _have_clock_of_server(ahead_s: float) -> None:
    """Let this process and its child read the run's clock, which the times of all messages are of."""
    own = time.monotonic
    time.monotonic = lambda: own() + ahead_s


def _leave(number: int, frame: FrameType | None) -> None:
    raise SystemExit


def main(
    descriptor: int,
    address: str = "",
    cache_bytes: int = MOST_CACHE_BYTES,
    memory_bytes: int = 1 << 62,
    parent: int | None = None,
) -> int:
    """Serve a run. Without a `parent` it is in a room of the server's: that ends with who made it, and its
    temporary files with it.
    """
    signal.signal(signal.SIGTERM, _leave)
    if parent is not None:
        end_with(parent, signal.SIGTERM)  # it still removes what the run has left
    import torch

    torch.set_num_threads(1)
    lines = JsonLines(socket.socket(fileno=descriptor), MOST_MESSAGE_BYTES)
    try:
        remove_leftovers()
        results, lock = own_folder(Path(tempfile.gettempdir()) if parent is None else None)
        process = BoardProcess(lines, address, cache_bytes, memory_bytes)
    except OSError as error:
        refuse(lines, f"This board cannot keep what a run needs: {why(error)}.")
        return 0
    try:
        try:
            process.run(results)
        finally:  # a node that is killed hangs up, too: its signal must not interrupt what follows
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
    except (ConnectionError, SystemExit):
        return 0
    finally:
        process.end()
        shutil.rmtree(results, ignore_errors=True)
        lock.close()
    return 0


if __name__ == "__main__":
    words = sys.argv[1:]
    sys.exit(main(int(words[0]), words[1], int(words[2]), int(words[3]), int(words[4])))
