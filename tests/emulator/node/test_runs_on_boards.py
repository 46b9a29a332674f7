"""Runs on boards that are processes here, with no server between: tokens, slices, faults, refusals."""

from __future__ import annotations

import json
import os
import resource
import signal
import socket
import threading
from collections import deque
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

import pytest

from emulator.session import boards
from engine.domain.addresses import Origin
from engine.domain.cluster import ClusterSpec
from engine.domain.errors import EdgeLoomError, RunError
from engine.domain.events import ChangeRefused, Event, StateChanged
from engine.domain.network import Actual, LoopbackNetwork, PairMeasurement
from engine.domain.report import PairReport
from engine.domain.scenario import Scenario, SetRate
from engine.domain.spec import RunSpec, WeightsRef
from engine.domain.trace import Mark, Span
from engine.experiments.execution.version import code_version
from engine.models import catalogue
from engine.models.reference import transformers_outputs
from engine.models.reference.process import one_process
from engine.runs.as_measured import as_measured
from engine.runs.execute import execute
from engine.runs.predict import predict, prepare
from engine.worlds.real.pacing import Pacer
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


def on_two(method: str, weights: WeightsRef, new_tokens: int = 4, requests: int = 1) -> RunSpec:
    return bound(on_boards(star((1e8,) * 2), method, weights, new_tokens, requests))


def on_boards(
    cluster: ClusterSpec, method: str, weights: WeightsRef, new_tokens: int, requests: int
) -> RunSpec:
    spec = spec_of(method, MODEL, cluster, new_tokens=new_tokens)
    workload = spec.workload.model_copy(update={"requests": requests})
    return spec.model_copy(update={"weights": weights, "workload": workload})


class Desk:
    """Boards, two if no others are named: their processes, our ends of their sockets, their caches."""

    def __init__(self, folder: Path, stack: ExitStack, names: Sequence[str] = ("a", "b"), **limits: int):
        self.caches = [folder / name for name in names]
        made = [stack.enter_context(board_process(cache, **limits)) for cache in self.caches]
        self.processes = [process for process, _ in made]
        self.socks = [sock for _, sock in made]

    def slices(self) -> list[set[str]]:
        return [{path.stem for path in cache.glob("edgeloom/slices/*.safetensors")} for cache in self.caches]

    def left(self) -> list[Path]:
        return [path for cache in self.caches for path in cache.glob("edgeloom/node-runs/*")]


@pytest.fixture
def desk(tmp_path):
    with ExitStack() as stack:
        yield lambda **limits: Desk(tmp_path, stack, **limits)


@pytest.mark.parametrize("method", ("single", "gpipe", "megatron", "voltage"))
def test_boards_give_the_tokens_of_transformers_with_their_own_slices_alone(method, weights, tmp_path):
    spec, events = on_two(method, weights), []
    with ExitStack() as stack:
        desk = Desk(tmp_path, stack)
        report = run_on(spec, desk.socks, events.append)
    assert report.outcome.kind == "finished" and report.correctness.token_identical is True
    assert report.world == "nodes" and report.fidelity.valid is None
    assert report.fidelity.native, "predicted beside measured"
    held = [{one.slice for one in report.plan.holdings if one.device == rank} for rank in (0, 1)]
    assert [len(found) for found in desk.slices()] == [len(slices) for slices in held]
    assert not desk.left()
    assert [(pair.sender, pair.receiver) for pair in report.pairs] == [("d0", "d1"), ("d1", "d0")]
    assert all(pair.drawn_bit_per_s == 1e8 < pair.measured_bit_per_s for pair in report.pairs), "loopback"
    ends = ((0, 1), (1, 0))
    pairs = [PairMeasurement(*two, *figures_of(pair)) for two, pair in zip(ends, report.pairs, strict=True)]
    found = as_measured(spec.cluster, Actual(tuple(pairs), (None, None), slowed=True))
    beside = report.predictions.with_all_changes_known
    assert beside.latency_s == predict(spec.model_copy(update={"cluster": found})).latency_s
    if method != "single":
        assert beside.latency_s != report.predictions.before_the_start.latency_s == predict(spec).latency_s


def figures_of(pair: PairReport) -> tuple[float, float, float]:
    return pair.measured_bit_per_s, pair.measured_delay_s, pair.measured_loss_frac


def test_a_killed_board_ends_the_run_with_a_sentence_and_nothing_is_left(weights, tmp_path):
    """Where the method has no new plan: `failover` is stop."""
    spec = on_two("megatron", weights, new_tokens=40, requests=200).model_copy(update={"failover": "stop"})
    with ExitStack() as stack:
        desk = Desk(tmp_path, stack)

        def kill_when_running(event):
            if isinstance(event, StateChanged) and event.state == "running":
                (device,) = children_of(desk.processes[1].pid)
                os.kill(desk.processes[1].pid, signal.SIGKILL)
                gone.append(device)

        gone: list[int] = []
        report = run_on(spec, desk.socks, kill_when_running)
    assert report.outcome.kind == "peer_lost" and report.outcome.sentence.startswith("d1 failed at ")
    assert gone and has_ended(gone[0]), "its device process ends with it"


@pytest.mark.parametrize(("method", "memory_bytes", "lost"), [("gpipe", 4e8, 2), ("adaptlink", 1.5e5, 1)])
def test_the_boards_that_are_left_go_on_with_the_right_tokens(method, memory_bytes, lost, weights, tmp_path):
    """One of three boards is killed in the middle of a sentence: with gpipe, the others fetch its part;
    AdaptLink's third has a backup of it.
    """
    cluster = star((1e8,) * 3, memory_bytes=memory_bytes)
    spec = bound(on_boards(cluster, method, weights, new_tokens=40, requests=30))
    with ExitStack() as stack:
        desk = Desk(tmp_path, stack, ("a", "b", "c"))
        killed: list[int] = []
        limits: list[int] = []

        def kill_at_the_third_token(event):
            is_token = isinstance(event, Mark) and event.name == "token_emitted"
            if is_token and event.facts["index"] >= 2 and not killed:
                killed.append(desk.processes[lost].pid)
                of_board = desk.processes[0].pid
                limits.extend(map(file_limit, (of_board, *children_of(of_board))))
                os.kill(killed[0], signal.SIGKILL)

        report = run_on(spec, desk.socks, kill_at_the_third_token)
    assert killed and report.outcome.kind == "finished", report.outcome
    assert limits == [file_limit(0), 1 << 30], "the board's own process writes slices of any size"
    assert report.correctness.token_identical is True
    assert [len(request.output_tokens) for request in report.requests] == [40] * 30
    assert [recovery.device for recovery in report.recoveries] == [f"d{lost}"]
    assert not report.fidelity.native and report.without_replan is None
    assert report.predictions.with_all_changes_known is None and report.with_best_planner_s is None
    assert "knows nothing of the loss" in " ".join(report.fidelity.notes)
    left = {path.relative_to(tmp_path).parts[0] for path in desk.left()}
    assert left <= {"abc"[lost]}, "who was killed cannot remove anything before its next start"


def has_ended(pid: int) -> bool:
    """Whether it runs no more; who its parent is now may not have asked for its status yet."""
    status = Path(f"/proc/{pid}/status")
    return not status.exists() or "State:\tZ" in status.read_text()


def file_limit(pid: int) -> int:
    return resource.prlimit(pid, resource.RLIMIT_FSIZE)[0]


def children_of(pid: int) -> list[int]:
    return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def test_a_plan_that_a_board_cannot_hold_is_refused_by_its_name(weights, desk):
    with pytest.raises(RunError, match=r"Board pi-d0 has 300.* of memory free, and this plan takes"):
        run_on(on_two("megatron", weights), desk(memory_bytes=300_000_001).socks, lambda event: None)


def on_one_board(spec: RunSpec) -> RunSpec:
    devices = tuple(device.model_copy(update={"node": "pi"}) for device in spec.cluster.devices)
    return spec.model_copy(update={"cluster": spec.cluster.model_copy(update={"devices": devices})})


def test_one_board_is_two_devices_and_its_memory_is_for_both(weights, tmp_path):
    spec = on_one_board(on_two("megatron", weights))
    with ExitStack() as stack:
        report = run_on(spec, Desk(tmp_path, stack, ("p", "p")).socks, lambda event: None)
    assert report.outcome.kind == "finished" and report.correctness.token_identical is True
    with (
        ExitStack() as stack,
        pytest.raises(RunError, match="pi has 600 MB of memory free, and this plan takes 600 MB"),
    ):
        small = Desk(tmp_path, stack, ("p", "p"), memory_bytes=600_000_001)  # enough for each of them alone
        run_on(spec, small.socks, lambda event: None)


def test_slices_beyond_the_limit_of_a_board_are_refused_by_its_name(weights, desk):
    report = run_on(on_two("megatron", weights), desk(cache_bytes=1000).socks, lambda event: None)
    assert report.outcome.kind == "failed"
    assert "keeps at most 1 kB" in report.outcome.sentence and report.outcome.device in ("d0", "d1")


def test_another_version_of_edgeloom_is_refused_by_name(weights, desk, monkeypatch):
    monkeypatch.setattr(boards, "code_version", lambda on_shapes: "fedcba987654")
    with pytest.raises(RunError, match=r"Board pi-d0 has another version of EdgeLoom \(.*fedcba987654"):
        run_on(on_two("megatron", weights), desk().socks, lambda event: None)


HELLO = {"version": "x", "address": "127.0.0.1", "available_bytes": 1 << 40, "row": None}
PROBED = {
    "forward_bit_per_s": 1e9,
    "backward_bit_per_s": 1e9,
    "delay_s": 1e-3,
    "forward_loss_frac": 0.0,
    "backward_loss_frac": 0.0,
}


class Played:
    """A board that a test plays: it answers each message by its type, honestly unless told otherwise."""

    def __init__(self, stack: ExitStack, answers: dict[str, bytes], came_from: str = "127.0.0.1"):
        self.ours, self.theirs = socket.socketpair()
        self.theirs.sendall(Origin(came_from).line())
        self.answers = {
            "who": said(type="hello", **HELLO | {"version": code_version(on_shapes=False)}),
            "clock": said(type="clock", at_s=1.0),
            "be_probed": said(type="probing", port=40_000),
            "probe": said(type="probed", **PROBED),
            "assign": said(type="listening", port=40_001),
        } | answers
        stack.enter_context(self.ours), stack.enter_context(self.theirs)
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self) -> None:
        with self.theirs.makefile("rb") as lines:
            try:
                for line in lines:
                    answer = self.answers.get(json.loads(line)["type"], b"")
                    if answer:
                        self.theirs.sendall(answer)
            except OSError:
                return


def said(**message: object) -> bytes:
    return json.dumps(message).encode() + b"\n"


HOSTILE = {
    "no JSON": ("clock", b"\xff\xfe\n"),
    "deep JSON": ("clock", b"[" * 100_000 + b"\n"),
    "no message": ("who", b"17\n"),
    "an unknown type": ("who", said(type="__class__")),
    "a type that is a list": ("who", said(type=["hello"])),
    "memory below 0": ("who", said(type="hello", **HELLO | {"available_bytes": -1})),
    "where it comes from": ("who", Origin("192.0.2.1").line()),
    "a port of a service": ("be_probed", said(type="probing", port=22)),
    "a clock that is no number": ("clock", b'{"type": "clock", "at_s": NaN}\n'),
    "a rate of 0": ("probe", said(type="probed", **PROBED | {"forward_bit_per_s": 0})),
    "a rate of 400 digits": ("probe", said(type="probed", **PROBED | {"forward_bit_per_s": 10**400})),
    "a path that loses all": ("probe", said(type="probed", **PROBED | {"backward_loss_frac": 0.999})),
    "a delay of ages": ("probe", said(type="probed", **PROBED | {"delay_s": 1e17})),
    "more lost than was sent": ("probe", said(type="probed", **PROBED | {"backward_loss_frac": 1.5})),
    "a row that is none": ("who", said(type="hello", **HELLO | {"row": {"name": 7}})),
    "a port beyond all": ("assign", said(type="listening", port=70_000)),
    "weights of others": ("assign", said(type="need", digest="a" * 64, start=0)),
    "a file elsewhere": ("assign", said(type="file", start=0, name="../../outputs.safetensors", data="")),
    "a file of another device": ("assign", said(type="file", start=0, name="pieces-9.safetensors", data="")),
    "no base64": ("assign", said(type="file", start=0, name="outputs.safetensors", data="&")),
    "a wrong trace": ("assign", said(type="trace", items=[{"kind": "span", "device": 7}])),
    "a log that is no text": ("assign", said(type="log", lines=[["x"]])),
    "a hang-up": ("assign", said(type="ended", words="its process was ended by SIGKILL")),
    "a refusal": ("assign", said(type="refused", sentence="This board is tired.")),
}


@pytest.mark.parametrize("what", HOSTILE)
def test_what_a_hostile_board_says_ends_its_run_with_a_sentence(what, weights, monkeypatch):
    asked, answer = HOSTILE[what]
    monkeypatch.setattr(boards, "HELLO_S", 20.0)
    with ExitStack() as stack:
        which = 0 if asked == "probe" else 1  # the first of two measures
        played = [Played(stack, {asked: answer} if rank == which else {}) for rank in (0, 1)]
        sentence = ended(on_two("megatron", weights), [one.ours for one in played], played[which])
    assert f"d{which}" in sentence, sentence
    assert sentence.endswith(".") and "Traceback" not in sentence and "Error" not in sentence


@pytest.mark.parametrize(("came_from", "port"), [("198.51.100.7", 40_000), ("127.0.0.1", 22)])
def test_a_board_leads_nobody_to_a_service_of_the_server(came_from, port, weights, monkeypatch):
    def only_of_honest_ones(self, src, dst):
        raise AssertionError("a board was sent there")

    monkeypatch.setattr(boards.BoardsNetwork, "_check_usable", only_of_honest_ones)
    answers = {"be_probed": said(type="probing", port=port)}
    with ExitStack() as stack:
        played = [Played(stack, answers, came_from) for _ in range(2)]
        with pytest.raises(RunError, match=r"at '127\.0\.0\.1', which is the server's own|with a wrong port"):
            run_on(on_two("megatron", weights), [one.ours for one in played], lambda event: None)


def ended(spec: RunSpec, socks: list[socket.socket], hostile: Played) -> str:
    """The sentence with which the run ends; what is wrong with it comes from its network or its report."""
    if hostile.answers["assign"].startswith(b'{"type": "ended"'):
        threading.Timer(0.5, lambda: hostile.theirs.shutdown(socket.SHUT_RDWR)).start()
    try:
        return run_on(spec, socks, lambda event: None).outcome.sentence
    except EdgeLoomError as error:
        return str(error)


def test_the_rest_of_a_message_under_way_goes_at_the_new_rate_of_its_link(weights, tmp_path):
    """The prompt's rows need seconds at the rate of the start, and the link is fast before they are over."""
    spec = on_two("gpipe", weights)
    links = tuple(link.model_copy(update={"bit_per_s": 5e3}) for link in spec.cluster.links)
    faster = tuple(SetRate(at_s=0.5, link=link.name, bit_per_s=1e9) for link in links)
    cluster = spec.cluster.model_copy(update={"links": links})
    spec = spec.model_copy(update={"cluster": cluster, "scenario": Scenario(changes=faster)})
    events: list[Event] = []
    with ExitStack() as stack:
        report = run_on(spec, Desk(tmp_path, stack).socks, events.append)
    assert report.outcome.kind == "finished" and report.correctness.token_identical is True
    received = [item for item in events if isinstance(item, Span) and item.kind == "recv"]
    first = min(received, key=lambda one: one.start_s)
    assert first.start_s < 0.5 < first.end_s, "it was under way"
    assert max(one.end_s for one in received) < 8 * first.bytes / 5e3, "all of the run is over before"


def test_boards_that_finish_and_leave_nothing_have_a_report_that_says_so(weights):
    finished = said(type="finished", pacing=Pacer(None).stats()._asdict())
    lies = {"connect": said(type="ready"), "start": finished}
    with ExitStack() as stack:
        played = [Played(stack, lies) for _ in range(2)]
        report = run_on(on_two("megatron", weights), [one.ours for one in played], lambda event: None)
    assert report.correctness.ok is False and report.correctness.why == "the source has left no outputs"


class Once:
    """Gives these commands at the first token, in their order."""

    def __init__(self, *commands: dict[str, object]):
        self.commands, self.events, self.may = deque(commands), list[Event](), False

    def watch(self, event: Event) -> None:
        self.events.append(event)
        self.may |= isinstance(event, Mark) and event.name == "token_emitted"

    def next(self) -> dict[str, object] | None:
        return self.commands.popleft() if self.may and self.commands else None


def test_no_message_is_faster_than_drawn_nor_than_a_slider_says_in_the_middle_of_a_run(weights, tmp_path):
    """Over loopback, a hundred times faster than drawn. What cannot be is refused, and the run goes on."""
    drawn = star((1e8,) * 2)
    links = tuple(link.model_copy(update={"bit_per_s": 2e7, "delay_s": 1e-3}) for link in drawn.links)
    drawn = drawn.model_copy(update={"links": links})
    spec = bound(on_boards(drawn, "megatron", weights, 12, 3))
    name = spec.cluster.links[0].name
    slower = {"kind": "set_rate", "link": name, "bit_per_s": 2e6, "direction": "both"}
    once = Once(slower, {"kind": "set_loss", "link": name, "loss_frac": 0.1, "direction": "both"})
    with ExitStack() as stack:
        report = run_on(spec, Desk(tmp_path, stack).socks, once.watch, once.next)
    assert report.outcome.kind == "finished" and report.correctness.token_identical is True
    received = [item for item in once.events if isinstance(item, Span) and item.kind == "recv"]
    delay_s = spec.cluster.delay_s(0, 1)
    assert received and all(one.end_s - one.start_s >= 8 * one.bytes / 2e7 + delay_s for one in received)
    (changed,) = (item for item in once.events if isinstance(item, Mark) and item.name == "link_changed")
    last = [one for one in received if one.request == 2]
    assert changed.time_s < min(one.start_s for one in last), "a slow machine has it before the last request"
    assert all(one.end_s - one.start_s >= 8 * one.bytes / 2e6 + delay_s for one in last)
    (refused,) = (event for event in once.events if isinstance(event, ChangeRefused))
    assert "never lost" in refused.reason
    assert [change.kind for change in report.scenario.changes] == ["set_rate"]
    known, before = report.predictions.with_all_changes_known, report.predictions.before_the_start
    assert known.latency_s > before.latency_s, "it knows the change"
    assert {pair.used_bit_per_s for pair in report.pairs} == {2e7}


def test_the_two_ends_agree_on_what_a_native_run_here_gives(weights):
    """The same plan on the same machine, forked: the plan of a run on boards is the one of all worlds."""
    spec = on_two("megatron", weights)
    here = spec.model_copy(update={"dilation": "native"})
    assert prepare(here).plan == prepare(spec).plan
    report = execute(here, lambda spec, dilation: LoopbackNetwork(spec.cluster))
    assert report.world == "native" and report.correctness.token_identical is True
