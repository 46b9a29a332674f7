"""The boards of a run as its network: the connections between them are what is there.

Each is reached over a socket that leads through the server to a process on the board (`emulator/node/`).
Their clocks are compared, their links are measured, then each runs a device process. A device that is no
board has such a process on the server (`played.py`), which paces it as it is drawn.
"""

from __future__ import annotations

import secrets
import socket
import time
from collections.abc import Collection, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

from emulator.session.board import Board
from emulator.session.slices import CutSlices
from engine.domain.cluster import DeviceSpec
from engine.domain.errors import RunError, SpecError
from engine.domain.network import Actual, LinkMeasurement, LinkState, PairMeasurement
from engine.domain.plan import Plan
from engine.domain.scenario import Change
from engine.domain.spec import RunSpec, WeightsRef
from engine.domain.units import human, human_s
from engine.experiments.execution.version import code_version
from engine.models.weights.store import source_of
from engine.ops.sizes import weight_bytes
from engine.runs.children import Child, Message
from engine.worlds.real.device_process import Assignment

HELLO_S, PROBE_S = 60.0, 30.0
"""A board imports torch before it says hello, which takes a Raspberry Pi half a minute."""
CLOCK_QUESTIONS = 8
LEAST_BIT_PER_S, MOST_BIT_PER_S, MOST_DELAY_S, MOST_LOSS_FRAC = 1e3, 1e15, 60.0, 0.9
"""Of a connection over which a run could end, and be predicted."""
PROCESS_BYTES = 300_000_000
"""What the process takes besides weights and caches: torch is not shared with another."""


class BoardsNetwork:
    """The boards of `spec`'s devices, over `sockets` in their order."""

    backend = "boards"

    def __init__(self, spec: RunSpec, sockets: Sequence[socket.socket]):
        self.cluster, self.spec = spec.cluster, spec
        self.key = secrets.token_hex(32)
        self.boards = [
            Board(rank, device.name, device.node or f"{device.name} (the server)", sock, Path())
            for rank, (device, sock) in enumerate(zip(spec.cluster.devices, sockets, strict=True))
        ]
        self.addresses: list[str] = []
        self.ahead_s: list[float] = []
        self.error_s = 0.0
        self.rows: list[DeviceSpec | None] = []
        self.pairs: dict[tuple[int, int], PairMeasurement] = {}

    def __enter__(self) -> BoardsNetwork:
        played = {device.name for device in self.cluster.devices if not device.node}
        said_by: dict[str, Message] = {}
        toward = ""
        for board in sorted(self.boards, key=lambda board: board.name in played):
            said = board.ask("hello", HELLO_S, type="who", toward=toward if board.name in played else "")
            if board.name not in played:
                said["address"] = board.listens_at(said["address"])
            toward = toward or said["address"]
            said_by[board.name] = said
        for board, device in zip(self.boards, self.cluster.devices, strict=True):
            said = said_by[board.name]
            if said["version"] != code_version(on_shapes=False):
                raise RunError(
                    f"Board {board.node} has another version of EdgeLoom ({said['version'][:20]}) than the "
                    f"server ({code_version(on_shapes=False)}): install the server's there.",
                    board.name,
                )
            self.addresses.append(said["address"])
            row = DeviceSpec.model_validate(said["row"]) if said["row"] else None
            self.rows.append(device if board.name in played else row)
            self._check_memory(board, said["available_bytes"])
            self.ahead_s.append(self._clock_of(board))
        return self

    def __exit__(self, *exc: object) -> None:
        for board in self.boards:
            board.kill()

    def _check_memory(self, board: Board, available_bytes: int) -> None:
        if available_bytes < PROCESS_BYTES:
            raise RunError(
                f"Board {board.node} has {human(available_bytes, 'B')} of memory free: a device process "
                f"takes {human(PROCESS_BYTES, 'B')} besides weights.",
                board.name,
            )
        board.available_bytes = available_bytes

    def _clock_of(self, board: Board) -> float:
        """How many seconds the server's clock is ahead of the board's, by the quickest answer of some."""
        ways = []
        for _ in range(CLOCK_QUESTIONS):
            asked_s = time.monotonic()
            at_s = float(board.ask("clock", HELLO_S, type="clock")["at_s"])
            answered_s = time.monotonic()
            ways.append((answered_s - asked_s, (asked_s + answered_s) / 2 - at_s))
        took_s, ahead_s = min(ways)
        self.error_s = max(self.error_s, took_s / 2)
        return ahead_s

    def start(self, rank: int, name: str, given: Assignment, others: Collection[Child]) -> Board:
        """Let the board of device `rank` run its process. Raises `RunError`, `SpecError`."""
        board = self.boards[rank]
        if board.slices is not None:
            raise SpecError(f"{name} is the board {board.node}: it takes part in a run once.")
        plan, spec = given.plan, given.spec
        drawn = spec.cluster.devices
        beside = [one for one, device in enumerate(drawn) if device.node == drawn[rank].node]
        needed = {one: _needed_bytes(spec, plan, one) for one in beside}
        available = min(self.boards[one].available_bytes for one in beside)
        if sum(needed.values()) > available:
            raise RunError(
                f"Board {board.node} has {human(available, 'B')} of memory free, and this plan takes "
                f"{human(sum(needed.values()), 'B')} there, twice its weights while they load: give it less "
                "of the model.",
                name,
            )
        board.results, board.devices = given.results, tuple(device.name for device in spec.cluster.devices)
        board.slices = CutSlices(spec.model, source_of(spec.weights, spec.seed))
        board.sends_weights = spec.weights.kind == "directory"
        board.send(
            type="assign",
            rank=rank,
            spec=_without_places(spec, is_played=not drawn[rank].node).model_dump(mode="json"),
            paced=not drawn[rank].node,
            plan=plan.model_dump(mode="json"),
            requests=[request.model_dump(mode="json") for request in given.requests],
            key=self.key,
            ahead_s=self.ahead_s[rank],
            beside=beside,
            memory_bytes=available * needed[rank] // sum(needed.values()),
            given=[pair for pair in self.pairs.values() if rank in pair[:2]] if spec.slows_links else [],
            files=board.files_of(plan),
        )
        return board

    def address(self, rank: int) -> str:
        return self.addresses[rank]

    def measure(self, only: Sequence[int] | None = None) -> list[LinkMeasurement]:
        """Every pair of boards, both ways; of a drawn link, what was measured between its ends."""
        if only is None:
            for src, dst in combinations(range(len(self.boards)), 2):
                self._measure_between(src, dst)
        measured = []
        for index, link in enumerate(self.cluster.links):
            if not {link.a, link.b} <= {device.name for device in self.cluster.devices}:
                continue
            if only is not None and index not in only:
                continue
            ends = self.cluster.rank(link.a), self.cluster.rank(link.b)
            for forward in (True, False):
                rate = self.pairs[ends if forward else ends[::-1]].bit_per_s
                measured.append(LinkMeasurement(index, forward, link.rate(forward), rate, self.backend))
        return measured

    def _measure_between(self, src: int, dst: int) -> None:
        """Measure one pair both ways. What is known of two machines holds for all devices on them."""
        drawn = self.cluster.devices
        machines = drawn[src].node, drawn[dst].node
        for one, other in list(self.pairs):
            if (drawn[one].node, drawn[other].node) == machines:
                for pair, same in (((src, dst), (one, other)), ((dst, src), (other, one))):
                    self.pairs[pair] = self.pairs[same]._replace(src=pair[0], dst=pair[1])
                return
        first, second = self.boards[src], self.boards[dst]
        port = second.ask("probing", PROBE_S, type="be_probed", key=self.key)["port"]
        to = {"address": self.addresses[dst], "port": port, "key": self.key}
        said = first.ask("probed", PROBE_S, type="probe", **to)
        for way, pair in (("forward", (src, dst)), ("backward", (dst, src))):
            rate, loss = said[f"{way}_bit_per_s"], said[f"{way}_loss_frac"]
            self.pairs[pair] = PairMeasurement(*pair, rate, said["delay_s"], loss)
            self._check_usable(self.pairs[pair], first)

    def _check_usable(self, pair: PairMeasurement, by: Board) -> None:
        names = self.boards[pair.src].name, self.boards[pair.dst].name
        is_rate = LEAST_BIT_PER_S <= pair.bit_per_s <= MOST_BIT_PER_S
        if not is_rate or pair.delay_s > MOST_DELAY_S or pair.loss_frac > MOST_LOSS_FRAC:
            raise RunError(
                f"Board {by.node} has measured {pair.bit_per_s:.3g} bit/s, {pair.delay_s:.3g} s of delay and "
                f"{pair.loss_frac:.1%} lost from {names[0]} to {names[1]}: "
                f"a run needs {LEAST_BIT_PER_S:g} bit/s or more (and no network has {MOST_BIT_PER_S:g}), at "
                f"most {MOST_DELAY_S:g} s and {MOST_LOSS_FRAC:.0%}; mend the network between them.",
                by.name,
            )

    def actual(self) -> Actual:
        return Actual(tuple(self.pairs.values()), tuple(self.rows), self.spec.slows_links)

    def notes(self) -> tuple[str, ...]:
        return (f"Times of different boards are known to {human_s(self.error_s)}, as their clocks are.",)

    # a network that nobody shapes
    def enter(self, rank: int) -> None:
        name = self.boards[rank].name
        raise RunError(f"{name} runs in a process of its board, and enters no network here.")

    def holds_delay(self, link: int) -> bool:
        return False

    def dilate(self, dilation: float) -> None:
        pass

    def apply(self, change: Change) -> dict[str, Any]:
        """Nothing: senders and receivers make the change, which all of them hear of."""
        return {}

    def state(self) -> list[LinkState]:
        return []


def _needed_bytes(spec: RunSpec, plan: Plan, rank: int) -> int:
    """What the process of a device takes while it loads its part of the plan."""
    held = [one for one in plan.holdings if one.device == rank and one.home != "offloaded"]
    return PROCESS_BYTES + sum(2 * weight_bytes(spec.model, one.slice) for one in held)


def _without_places(spec: RunSpec, is_played: bool) -> RunSpec:
    """The run as a board gets it: nothing of where files are on the server, nor of its times."""
    ref: WeightsRef = spec.weights.model_copy(update={"directory": ""})
    return spec.model_copy(update={"weights": ref, "profile": spec.profile if is_played else None})
