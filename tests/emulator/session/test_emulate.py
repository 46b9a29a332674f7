"""A real run in an emulated network, from the outside: events in order, live commands, turns, errors."""

import os
import queue
import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bench.chaos.verdict import other_work
from emulator import emulate
from emulator.host.places import queue_name
from emulator.session.calls import call
from emulator.session.turns import name_of, tickets
from emulator.session.view import session_cache
from engine.domain.cluster import ClusterSpec
from engine.domain.errors import Cancelled, PlanError
from engine.domain.events import Event, LinksSampled, ReportMade, StateChanged, to_json
from engine.domain.report import RunReport
from engine.domain.scenario import DropDevice, JoinDevice, LiveCommand, Scenario, SetRate
from engine.domain.spec import RunSpec
from engine.domain.trace import Mark, Span
from engine.domain.workload import Workload
from engine.models import catalogue
from engine.runs.predict import predict
from engine.strategies.registry import by_rule
from tests.support import session_bodies
from tests.support.small_clusters import cluster as make
from tests.support.small_clusters import link, star

pytestmark = pytest.mark.root
PATIENCE_S = 600
TRIES = 6


def spec_for(cluster: ClusterSpec, strategy: str = "gpipe", new_tokens: int = 4, **more: Any) -> RunSpec:
    model, weights = catalogue.resolve("tiny-gpt2", "random")
    workload = Workload(prompt_tokens=8, new_tokens=new_tokens)
    settings: dict[str, Any] = {"dilation": 4.0, "params": by_rule(strategy)} | more
    return RunSpec(
        cluster=cluster, model=model, weights=weights, strategy=strategy, workload=workload, **settings
    )


def run(spec: RunSpec, commands: "queue.Queue[LiveCommand] | None" = None) -> tuple[RunReport, list[Event]]:
    events: list[Event] = []
    return emulate(spec, events.extend, commands), events


def run_in_time(
    spec: RunSpec, is_enough: Callable[[list[Event]], bool] = lambda events: True
) -> tuple[RunReport, list[Event]]:
    """As `run`, and again where a busy host made a change only after the end, or too late for `is_enough`."""
    for _ in range(TRIES):
        report, events = run(spec)
        if len(report.scenario.changes) == len(spec.scenario.changes) and is_enough(events):
            break
    return report, events


def states(events: list[Event]) -> list[str]:
    return [event.state for event in events if isinstance(event, StateChanged)]


@pytest.mark.alone
def test_a_run_over_mininet_is_correct_and_its_events_are_in_order() -> None:
    report, events = run(spec_for(star(3), "megatron"))
    assert report.outcome.kind == "finished"
    assert report.correctness.ok
    assert report.dilation == 4.0
    assert states(events)[:2] == ["planning", "building"]
    assert states(events)[-1] == "finished"
    assert sum(isinstance(event, ReportMade) for event in events) == 1
    tokens = [e for e in events if isinstance(e, Mark) and e.name == "token_emitted"]
    assert [token.facts["index"] for token in tokens] == [0, 1, 2, 3]
    links = [event for event in events if isinstance(event, LinksSampled)]
    assert links
    assert {(sample.link, sample.forward) for sample in links[0].links} == {
        (index, forward) for index in range(3) for forward in (True, False)
    }
    assert report.fidelity.backend.startswith("tbf")
    # of virtual time: one in wall time would be a fourth; a busy host makes some measurements slower
    rates = [link.achieved_bit_per_s for link in report.links]
    assert 25e6 < max(rates) < 52.5e6


def test_no_process_of_a_run_holds_its_turn_while_its_outputs_are_compared() -> None:
    held: dict[str, list[int]] = {}

    def look(events: list[Event]) -> None:
        held.update({state: tickets(queue_name()) for state in states(events)})

    assert emulate(spec_for(star(2)), look).correctness.ok
    assert held["running"] and not held["verifying"]


@pytest.mark.alone
def test_every_byte_crosses_the_faster_of_parallel_links_with_its_delay() -> None:
    """Of two links between two devices one is faster there, the other back: each carries one direction."""
    first = link("n0", "n1", 40e6, reverse_bit_per_s=10e6, delay_s=0.002)
    second = link("n0", "n1", 20e6, reverse_bit_per_s=30e6, delay_s=0.006, parallel=2)
    report, events = run(spec_for(make("n0 n1", "", first, second), "megatron", dilation=32.0))
    assert report.correctness.ok, report.correctness

    spans = [event for event in events if isinstance(event, Span)]
    assert set(to_json(spans)[0]) == set(Span.__dataclass_fields__)
    sent = {(s.device, s.name, s.request, s.token): s for s in spans if s.kind == "send"}
    ways = {"n0": (0, True, 40e6, 0.002), "n1": (1, False, 30e6, 0.006)}
    expected = {way[:2]: sum(s.bytes for s in sent.values() if s.device == src) for src, way in ways.items()}
    directions = [(index, forward) for index in (0, 1) for forward in (True, False)]
    found = {end: row.bytes for end, row in zip(directions, report.links, strict=True) if row.bytes}
    assert found == expected
    samples = [one for event in events if isinstance(event, LinksSampled) for one in event.links]
    assert {(one.link, one.forward) for one in samples if one.bit_per_s > 0} == set(expected)
    longer: dict[str, list[float]] = {"n0": [], "n1": []}
    for got in [s for s in spans if s.kind == "recv"]:
        _, _, bit_per_s, delay_s = ways[got.peer]
        message = sent[got.peer, got.name, got.request, got.token]
        least_s = 8 * message.bytes / bit_per_s + delay_s
        longer[got.peer].append((got.end_s - message.start_s) / least_s)
    for ratios in longer.values():
        assert 1 - 1e-6 <= min(ratios) <= 1.2  # a busy host delays messages


def test_a_live_rate_change_is_applied_and_recorded_in_the_scenario() -> None:
    commands: queue.Queue[LiveCommand] = queue.Queue()
    events: list[Event] = []

    def on_events(batch: list[Event]) -> None:
        if "running" in states(batch):
            commands.put({"kind": "set_rate", "link": "hub--n0", "bit_per_s": 5e6})
        if any(isinstance(event, Mark) and event.name == "link_changed" for event in batch):
            commands.put({"kind": "stop"})
        events.extend(batch)

    report = emulate(spec_for(star(2), "megatron", new_tokens=50, dilation=200.0), on_events, commands)
    (change,) = report.scenario.changes
    assert change.kind == "set_rate"
    assert change.bit_per_s == 5e6
    (mark,) = [e for e in events if isinstance(e, Mark) and e.name == "link_changed"]
    assert [entry["bit_per_s"] for entry in mark.facts["in_force"]] == pytest.approx([5e6, 5e6], rel=1e-3)
    assert report.outcome.kind == "cancelled"


@pytest.mark.alone
def test_messages_take_four_times_as_long_from_when_a_rate_is_a_fourth() -> None:
    cluster = make("n0 n1", "hub", link("n0", "hub", 4e5), link("n1", "hub", 1e8))
    spec = spec_for(cluster, "gpipe", new_tokens=20, dilation=2.0)
    half_s = predict(spec).latency_s / 2
    change = SetRate(at_s=half_s, link="hub--n0", bit_per_s=1e5, direction="both")
    spec = spec.model_copy(update={"scenario": Scenario(changes=(change,))})

    def before_and_after(events: list[Event]) -> tuple[list[Span], list[Span]]:
        messages = [e for e in events if isinstance(e, Span) and e.kind == "recv" and e.token > 0]
        in_force_s = next(e.time_s for e in events if isinstance(e, Mark) and e.name == "link_changed")
        return (
            [message for message in messages if message.end_s < in_force_s],
            [message for message in messages if message.start_s > in_force_s],
        )

    def bit_per_s(some: list[Span]) -> float:
        """The fastest message's: a busy host only delays messages."""
        return max(8 * message.bytes / (message.end_s - message.start_s) for message in some)

    report, events = run_in_time(spec, lambda events: min(map(len, before_and_after(events))) > 3)
    assert report.outcome.kind == "finished"
    before, after = before_and_after(events)
    assert len(before) > 3
    assert len(after) > 3
    after = after[len(after) // 2 :]  # a busy device learns of the change later
    assert bit_per_s(before) / bit_per_s(after) == pytest.approx(4.0, rel=0.15)


@pytest.mark.long("emulator", "engine/runs", "engine/worlds/real", "tests/emulator")
def test_sixteen_devices_come_up_and_are_right() -> None:
    names = [f"n{rank}" for rank in range(16)]
    cluster = make(" ".join(names), "hub", *(link(name, "hub", 1e9) for name in names))
    model, weights = catalogue.resolve("demo-lm")
    workload = Workload(prompt_tokens=8, new_tokens=2)
    report, events = run(
        RunSpec(
            cluster=cluster, model=model, weights=weights, strategy="mcu", workload=workload, dilation=8.0
        )
    )
    assert report.outcome.kind == "finished", report.outcome.sentence
    assert report.correctness.token_identical, report.correctness.why
    assert len(report.devices) == 16
    assert {e.device for e in events if isinstance(e, Span) and e.kind == "compute"} == set(names)


def test_stop_ends_the_run_and_keeps_a_report() -> None:
    commands: queue.Queue[LiveCommand] = queue.Queue()

    def on_events(batch: list[Event]) -> None:
        if "running" in states(batch):
            commands.put({"kind": "stop"})

    report = emulate(spec_for(star(2), "megatron", new_tokens=50, dilation=200.0), on_events, commands)
    assert report.outcome.kind == "cancelled"


def test_after_a_dropped_device_the_sentence_is_finished_with_the_same_tokens() -> None:
    scenario = Scenario(changes=(DropDevice(at_s=0.02, device="n1"),))
    report, _ = run_in_time(spec_for(star(2), "megatron", new_tokens=40, dilation=20.0, scenario=scenario))
    assert report.outcome.kind == "finished", report.outcome.sentence
    assert report.correctness.ok
    (recovery,) = report.recoveries
    assert (recovery.device, recovery.how, recovery.replanned) == ("n1", "killed", True)
    assert recovery.at_s >= 0.02
    assert report.without_replan is not None
    assert report.without_replan.kind == "peer_lost"


@pytest.mark.alone
def test_a_device_that_was_dropped_and_joins_again_computes_what_is_predicted() -> None:
    # so slow that a new plan, which takes wall time, costs few tokens
    spec = spec_for(star(3), "megatron", new_tokens=24, dilation=60.0)
    latency_s = predict(spec).latency_s
    times_s = (0.2 * latency_s, 0.4 * latency_s)
    changes = (DropDevice(at_s=times_s[0], device="n1"), JoinDevice(at_s=times_s[1], device="n1"))
    spec = spec.model_copy(update={"scenario": Scenario(changes=changes)})
    report, events = run_in_time(spec)
    assert report.outcome.kind == "finished", report.outcome.sentence
    assert [(one.device, one.how) for one in report.recoveries] == [("n1", "killed"), ("n1", "joined")]
    assert other_work(spec, report, [event for event in events if isinstance(event, Span | Mark)]) == ""


def test_a_dropped_device_is_named_with_its_time_where_a_run_is_to_stop() -> None:
    scenario = Scenario(changes=(DropDevice(at_s=0.02, device="n1"),))
    spec = spec_for(star(2), "megatron", new_tokens=40, dilation=20.0, scenario=scenario, failover="stop")
    report, _ = run_in_time(spec)
    assert report.outcome.kind == "peer_lost"
    assert report.outcome.device == "n1"
    assert report.outcome.time_s >= 0.02


def test_a_second_run_queues_visibly_and_then_runs() -> None:
    first_runs, second_waits = threading.Event(), threading.Event()
    seen: list[Event] = []
    reports: list[RunReport] = []

    def first_events(batch: list[Event]) -> None:
        if "building" in states(batch):
            first_runs.set()
            second_waits.wait(PATIENCE_S)

    def second_events(batch: list[Event]) -> None:
        seen.extend(batch)
        if "queued" in states(batch):
            second_waits.set()

    first = threading.Thread(target=lambda: reports.append(emulate(spec_for(star(2)), first_events)))
    first.start()
    assert first_runs.wait(PATIENCE_S)
    reports.append(emulate(spec_for(star(2)), second_events))
    first.join()
    assert [report.outcome.kind for report in reports] == ["finished", "finished"]
    queued = next(event for event in seen if isinstance(event, StateChanged))
    assert queued.state == "queued"
    me = name_of(os.geteuid())
    assert queued.detail.startswith(f"1 run ahead on this machine, a run of {me} (process ")


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="two runs need a core each")
def test_two_runs_at_once_are_both_right_where_the_host_allows_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOOM_RUNS_AT_ONCE", "2")
    both_built = threading.Barrier(2, timeout=PATIENCE_S)
    reports: list[RunReport] = []
    seen: list[str] = []

    def on_events(batch: list[Event]) -> None:
        seen.extend(states(batch))
        if "building" in states(batch):
            both_built.wait()

    def one() -> None:
        reports.append(emulate(spec_for(star(2), "megatron"), on_events))

    threads = [threading.Thread(target=one) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [report.outcome.kind for report in reports] == ["finished", "finished"]
    assert all(report.correctness.ok for report in reports)
    assert "queued" not in seen


def test_a_session_has_only_its_share_of_the_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    every = sorted(os.sched_getaffinity(0))
    assert call(session_bodies.cores) == every
    monkeypatch.setenv("LOOM_RUNS_AT_ONCE", str(len(every)))
    assert call(session_bodies.cores) == every[:1]


def test_a_waiting_run_can_be_stopped() -> None:
    first_runs, release = threading.Event(), threading.Event()

    def first_events(batch: list[Event]) -> None:
        if "building" in states(batch):
            first_runs.set()
            release.wait(PATIENCE_S)

    first = threading.Thread(target=lambda: emulate(spec_for(star(2)), first_events))
    first.start()
    assert first_runs.wait(PATIENCE_S)
    commands: queue.Queue[LiveCommand] = queue.Queue()
    commands.put({"kind": "stop"})
    with pytest.raises(Cancelled, match="before it began"):
        emulate(spec_for(star(2)), lambda batch: None, commands)
    release.set()
    first.join()


def test_the_first_run_on_a_machine_of_which_nothing_is_known_does_not_calibrate_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = session_cache() / "references"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    if known.is_dir():  # what other tests have computed; to compute it anew takes seconds
        shutil.copytree(known, session_cache() / known.name)
    report, events = run(spec_for(star(2), dilation="auto"))
    assert report.correctness.ok
    assert report.spec.profile is None
    written = {path.name for path in tmp_path.rglob("*.json")}
    assert written == {"kernels.json"}
    first, second = (
        event for event in events if isinstance(event, StateChanged) and event.state == "planning"
    )
    assert (first.detail, second.detail.split(",")[0]) == ("", "timing this machine's products")

    report, events = run(spec_for(star(2), dilation="native"))
    assert "planning" in states(events) and "not calibrated" in report.fidelity.notes[0]
    assert report.predictions.with_all_changes_known is None


def test_jitter_is_made_with_netem_or_without_and_the_report_says_how() -> None:
    report, _ = run(spec_for(star(2, delay_s=0.002, jitter_s=0.001)))
    assert report.outcome.kind == "finished", report.outcome.sentence
    assert report.correctness.ok
    assert report.fidelity.backend in ("tbf+netem", "tbf+relay")


def test_an_impossible_plan_is_the_planners_own_error() -> None:
    small = star(2)
    devices = tuple(device.model_copy(update={"memory_bytes": 1000.0}) for device in small.devices)
    with pytest.raises(PlanError):
        run(spec_for(small.model_copy(update={"devices": devices}), "gpipe"))
