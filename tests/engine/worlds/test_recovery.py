"""Simulated runs in which a device fails: every strategy still finishes the text, whichever device it is."""

import pytest

from engine.domain.errors import PlanError, SpecError
from engine.domain.scenario import DropDevice, FreezeDevice, JoinDevice, LinkDown, Scenario
from engine.domain.trace import Mark, Span
from engine.domain.workload import Request, Workload
from engine.runs.predict import plan_of, prepare, simulate
from engine.runs.replan import unfinished
from engine.strategies.registry import STRATEGIES
from tests.support.recovery_cases import CLUSTER, NEW_TOKENS, emitted, halfway_s, marks, spec_of

SUPPORTED = [s.name for s in STRATEGIES if s.supports(CLUSTER, spec_of("single").model) is None]


@pytest.mark.parametrize("lost", "bcd")
@pytest.mark.parametrize("strategy", SUPPORTED)
def test_the_text_is_finished_whichever_device_is_killed(strategy, lost):
    trace, outcome = simulate(prepare(spec_of(strategy, [DropDevice(at_s=halfway_s(strategy), device=lost)])))
    assert outcome.kind == "finished", outcome.sentence
    assert emitted(trace) == [(0, index) for index in range(NEW_TOKENS)]
    gone_s = next(mark.time_s for mark in marks(trace, "device_lost"))
    after = [item for item in trace if isinstance(item, Span) and item.start_s > gone_s]
    assert not [span for span in after if span.device == lost]


@pytest.mark.parametrize("strategy", ["gpipe", "edgeshard", "megatron"])
def test_every_request_of_a_burst_is_finished(strategy):
    burst = {"workload": Workload(prompt_tokens=12, new_tokens=4, requests=3, pattern="bursty")}
    change = DropDevice(at_s=halfway_s(strategy, **burst), device="b")
    trace, outcome = simulate(prepare(spec_of(strategy, [change], **burst)))
    assert outcome.kind == "finished", outcome.sentence
    assert emitted(trace) == [(request, index) for request in range(3) for index in range(4)]


@pytest.mark.parametrize(
    "change",
    [
        FreezeDevice(at_s=0.05, device="b"),
        LinkDown(at_s=0.05, link="b--s1"),
    ],
    ids=lambda change: change.kind,
)
def test_a_silent_device_is_given_up_after_the_stated_silence_and_the_sentence_is_finished(change):
    trace, outcome = simulate(prepare(spec_of("megatron", [change], silence_s=0.7)))
    assert outcome.kind == "finished", outcome.sentence
    (detected,) = marks(trace, "loss_detected")
    assert detected.device == "b"
    assert detected.time_s == pytest.approx(0.05 + 0.7, abs=0.01)
    assert len(emitted(trace)) == NEW_TOKENS


def test_the_new_plan_uses_the_remaining_devices_alone_and_is_marked():
    trace, _ = simulate(prepare(spec_of("megatron", [DropDevice(at_s=halfway_s("megatron"), device="c")])))
    (replanned,) = marks(trace, "replanned")
    plan = replanned.facts["plan"]
    assert plan["version"] == 1
    assert {work["device"] for work in plan["work"]} == {0, 1, 3}
    assert sorted(mark.device for mark in marks(trace, "reloaded")) == ["a", "b", "d"]
    assert any(item.kind == "load" for item in trace if isinstance(item, Span))


def test_losing_the_source_ends_the_run_with_a_clear_result():
    _, outcome = simulate(prepare(spec_of("megatron", [DropDevice(at_s=0.05, device="a")])))
    assert outcome.kind == "peer_lost"
    assert "a failed" in outcome.sentence and "source" in outcome.sentence


def test_with_failover_stop_a_run_ends_at_a_failure():
    change = DropDevice(at_s=0.05, device="b")
    _, outcome = simulate(prepare(spec_of("megatron", [change], failover="stop")))
    assert (outcome.kind, outcome.device) == ("peer_lost", "b")


def test_survivors_that_cannot_hold_the_model_say_what_binds():
    small = [d.model_copy(update={"memory_bytes": 70e3}) for d in CLUSTER.devices]
    cluster = CLUSTER.model_copy(update={"devices": tuple(small)})
    spec = spec_of("gpipe").model_copy(update={"cluster": cluster})
    _, outcome = simulate(prepare(spec))
    assert outcome.kind == "finished"
    spec = spec.model_copy(
        update={
            "scenario": Scenario(
                changes=[
                    DropDevice(at_s=0.02, device="b"),
                    DropDevice(at_s=0.025, device="c"),
                ]
            )
        }
    )
    _, outcome = simulate(prepare(spec))
    assert outcome.kind == "peer_lost"
    assert "cannot go on" in outcome.sentence and "kB" in outcome.sentence


def test_a_device_that_joins_is_planned_for_from_then_on():
    join = JoinDevice(at_s=0.05, device="d")
    spec = spec_of("megatron", [join])
    prepared = prepare(spec)
    assert {work.device for work in prepared.plan.work} == {0, 1, 2}
    trace, outcome = simulate(prepared)
    assert outcome.kind == "finished", outcome.sentence
    assert len(emitted(trace)) == NEW_TOKENS
    (replanned,) = marks(trace, "replanned")
    assert {work["device"] for work in replanned.facts["plan"]["work"]} == {0, 1, 2, 3}


@pytest.mark.parametrize("strategy", SUPPORTED)
def test_a_run_whose_devices_all_join_later_is_refused_with_their_names(strategy):
    spec = spec_of(strategy, [JoinDevice(at_s=0.1, device=name) for name in "bcd"])
    terminal = spec.cluster.devices[0].model_copy(update={"role": "terminal"})
    cluster = spec.cluster.model_copy(update={"devices": (terminal, *spec.cluster.devices[1:])})
    with pytest.raises(PlanError, match="no device of four computes at the start: b, c, d join only later"):
        prepare(spec.model_copy(update={"cluster": cluster}))


def test_a_source_that_joins_later_is_refused():
    with pytest.raises(SpecError, match="the source a of four joins only after the start"):
        prepare(spec_of("megatron", [JoinDevice(at_s=0.1, device="a")]))


def test_a_device_may_fail_and_join_again():
    at_s = halfway_s("gpipe")
    changes = [DropDevice(at_s=at_s, device="b"), JoinDevice(at_s=at_s + 0.01, device="b")]
    trace, outcome = simulate(prepare(spec_of("gpipe", changes)))
    assert outcome.kind == "finished", outcome.sentence
    assert len(marks(trace, "replanned")) == 2
    assert len(emitted(trace)) == NEW_TOKENS


def test_kept_tokens_become_part_of_the_prompt():
    requests = (Request(index=0, tokens=(5, 6)), Request(index=1, tokens=(7, 8)))
    trace = [
        Mark(0.1, "token_emitted", facts={"request": 0, "index": 0, "token": 41}),
        Mark(0.2, "token_emitted", facts={"request": 0, "index": 1, "token": 42}),
        Mark(0.2, "request_finished", facts={"request": 1}),
    ]
    assert unfinished(requests, trace) == (Request(index=0, tokens=(5, 6, 41, 42), emitted=2),)
    trace.append(Mark(0.3, "token_emitted", facts={"request": 0, "index": 2, "token": 43}))
    again = unfinished(unfinished(requests, trace[:3]), trace)
    assert again == (Request(index=0, tokens=(5, 6, 41, 42, 43), emitted=3),)


def test_the_same_failures_give_the_same_trace():
    spec = spec_of("voltage", [DropDevice(at_s=halfway_s("voltage"), device="c")])
    assert simulate(prepare(spec)) == simulate(prepare(spec))


def test_a_plan_for_a_device_that_is_not_there_yet_is_refused_nowhere():
    """Absent devices are terminals to the planner: the plan is that of the smaller cluster."""
    spec = spec_of("edgeshard", [JoinDevice(at_s=1.0, device="b")])
    requests = prepare(spec).requests
    assert 1 not in {work.device for work in plan_of(spec, requests).work}
