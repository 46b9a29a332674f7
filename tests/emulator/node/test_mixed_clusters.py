"""A run on a board and on devices that the server plays beside it."""

from __future__ import annotations

import os
import socket
from collections import defaultdict
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from statistics import median

import pytest

from emulator.host.rights import identity
from emulator.session.board import Board
from emulator.session.boards import BoardsNetwork
from emulator.session.isolation import Isolated
from emulator.session.played import BOARD_PROCESS, with_played
from emulator.session.turns import turn
from emulator.session.wire import JsonLines
from engine.domain.errors import SpecError
from engine.domain.events import Event
from engine.domain.spec import WeightsRef
from engine.domain.trace import Mark, Span
from engine.models import catalogue
from engine.models.reference import transformers_outputs
from engine.models.reference.process import one_process
from engine.runs.predict import prepare, simulate
from tests.support.boards import board_process, bound, run_on
from tests.support.small_cases import spec_of, star

MODEL, _ = catalogue.resolve("tiny-llama", "random")


@pytest.fixture(scope="module")
def weights(tmp_path_factory) -> WeightsRef:
    folder = tmp_path_factory.mktemp("model")
    transformers_outputs.library_model(spec_of("single", MODEL, star((1e8,)))).save_pretrained(folder)
    return WeightsRef(kind="directory", directory=str(folder))


@pytest.fixture(autouse=True, scope="module")
def reference():
    with one_process():
        yield


def mixed(weights: WeightsRef, flop_per_s: float, **changes):
    """`d0` is a board; `d1`, of this speed, is drawn alone."""
    spec = bound(spec_of("megatron", MODEL, star((1e8, flop_per_s)), new_tokens=4))
    d0, d1 = spec.cluster.devices
    devices = (d0, d1.model_copy(update={"node": ""}))
    cluster = spec.cluster.model_copy(update={"devices": devices})
    return spec.model_copy(update={"cluster": cluster, "weights": weights} | changes)


@contextmanager
def rooms(records: Path) -> Iterator[tuple]:
    """What makes the room of a played device, and the rooms that it has made."""
    made = []

    def room() -> Isolated:
        made.append(isolated())
        return made[-1]

    with turn("played", lambda wait: None, lambda: None) as mine:
        isolated = partial(Isolated, BOARD_PROCESS, records, mine, own_network=False)
        yield room, made


def computed_s(trace: list[Event], device: str) -> dict[str, list[float]]:
    """How long its operations took, by their names."""
    found = defaultdict(list)
    for item in trace:
        if isinstance(item, Span) and item.kind == "compute" and item.device == device:
            found[item.name].append(item.end_s - item.start_s)
    return found


def test_a_board_and_a_played_device_give_the_right_tokens_and_the_played_one_is_as_slow_as_drawn(
    weights, tmp_path, monkeypatch
):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "server"))
    spec, events = mixed(weights, 1e7), []
    with (
        board_process(tmp_path / "board") as (_, sock),
        rooms(tmp_path) as (room, _),
        with_played(spec, [sock], room) as socks,
    ):
        report = run_on(spec, socks, events.append)
    assert report.outcome.kind == "finished", report.outcome
    assert report.correctness.token_identical is True and report.world == "nodes"
    drawn, took = computed_s(simulate(prepare(spec))[0], "d1"), computed_s(events, "d1")
    assert drawn.keys() == took.keys() and drawn
    for name, times_s in took.items():
        assert median(times_s) >= 0.999 * median(drawn[name]), name
    assert any("the server played d1 as drawn" in note for note in report.fidelity.notes)
    assert not any(isinstance(item, Mark) and item.name == "device_lost" for item in events)
    assert not list((tmp_path / "server").glob("**/node-runs/*")), "it leaves nothing"


def test_a_played_device_has_the_machines_network_and_none_of_the_servers_rights_and_secrets(
    weights, tmp_path, monkeypatch
):
    monkeypatch.setenv("DATABASE_URL", "a-secret")
    with rooms(tmp_path) as (room, made), with_played(mixed(weights, 1e7), [object()], room) as (_, sock):
        lines = JsonLines(sock)
        lines.send({"type": "clock"})
        assert lines.receive(60)[0]["type"] == "clock", "it is in its room"
        pids = [member.pid for one in made for member in one.members()]
        assert len(pids) == 2
        for pid in map(str, pids):
            own, proc = Path("/proc/self/ns"), Path("/proc", pid)
            assert (proc / "ns/net").readlink() == (own / "net").readlink()
            assert (proc / "ns/user").readlink() != (own / "user").readlink()
            assert (proc / "ns/pid_for_children").readlink() != (own / "pid").readlink()
            assert b"a-secret" not in (proc / "environ").read_bytes()
            assert proc.stat().st_uid == (os.getuid() if identity() is None else identity())


def test_more_devices_than_a_server_plays_are_refused_before_a_process_is_started(weights):
    spec = bound(spec_of("megatron", MODEL, star((1e8,) * 18), new_tokens=4))
    first, *others = spec.cluster.devices
    devices = (first, *(device.model_copy(update={"node": ""}) for device in others))
    spec = spec.model_copy(update={"cluster": spec.cluster.model_copy(update={"devices": devices})})
    with (
        pytest.raises(SpecError, match=r"17 devices without a board.* at most 16"),
        with_played(spec, [], None),
    ):
        pass


def test_a_device_that_the_server_cannot_play_as_fast_as_drawn_is_refused_before_anything_starts(weights):
    with pytest.raises(SpecError, match=r"the server cannot play d1 as fast as drawn: .* times as long"):
        run_on(mixed(weights, 1e15, compute_model="flops"), [], lambda event: None)


def test_what_is_measured_of_two_machines_holds_for_all_devices_on_them_in_its_direction(monkeypatch):
    """`d0` and `d1` are one board, `d2` is another: two measurements, one of them of the board by itself."""
    spec = bound(spec_of("megatron", MODEL, star((1e8, 1e8, 1e8)), new_tokens=4))
    d0, d1, d2 = spec.cluster.devices
    devices = (d0, d1.model_copy(update={"node": d0.node}), d2)
    spec = spec.model_copy(update={"cluster": spec.cluster.model_copy(update={"devices": devices})})
    socks = [end for _ in devices for end in socket.socketpair()]
    with ExitStack() as stack:
        for sock in socks:
            stack.enter_context(sock)
        network, asked = BoardsNetwork(spec, socks[::2]), []
        network.addresses = ["10.0.0.1", "10.0.0.1", "10.0.0.2"]

        def ask(board, kind, patience_s, **message):
            asked.append(board.name)
            each = {"bit_per_s": 1e8 * len(asked), "loss_frac": 0.0}
            ways = {f"{way}_{name}": value for way in ("forward", "backward") for name, value in each.items()}
            return {"port": 5000, "delay_s": 1e-3, **ways, "backward_bit_per_s": 1e6 * len(asked)}

        monkeypatch.setattr(Board, "ask", ask)
        network.measure()
    rates = {ends: pair.bit_per_s for ends, pair in network.pairs.items()}
    assert all(pair[:2] == ends for ends, pair in network.pairs.items())
    assert len(asked) == 4, "two questions for each of two measurements"
    assert rates[0, 2] == rates[1, 2] == 4e8 and rates[2, 0] == rates[2, 1] == 4e6
    assert rates[0, 1] == 2e8
