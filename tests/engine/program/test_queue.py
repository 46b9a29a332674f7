"""Requests in a queue: first come first served, in time, together where they may be."""

from itertools import pairwise

import pytest

from engine.domain.arrivals import arrivals_s
from engine.domain.errors import SpecError
from engine.domain.spec import RunSpec
from engine.domain.trace import Mark, Span
from engine.domain.workload import Workload
from engine.program.frames import FRAME_HEADER_BYTES
from engine.runs.predict import predict, prepare, simulate
from engine.strategies.registry import STRATEGIES, by_rule, drafted, strategy
from tests.support.small_cases import GPT2, star

NAMES = [chosen.name for chosen in STRATEGIES]


def spec_of(name, **workload):
    given = {"prompt_tokens": 5, "new_tokens": 2, "requests": 8} | workload
    return RunSpec(
        cluster=star([1e9] * 2),
        model=drafted(strategy(name), GPT2),
        strategy=name,
        params=by_rule(name),
        workload=Workload.parse(given, "test"),
        seed=5,
    )


def trace_of(spec):
    return simulate(prepare(spec))[0]


def times_s(trace, name):
    return {m.facts["request"]: m.time_s for m in trace if isinstance(m, Mark) and m.name == name}


def service_s(name):
    """One request alone, on an idle cluster."""
    return predict(spec_of(name, requests=1)).latency_s


@pytest.mark.parametrize("load", [0.3, 0.9, 3.0])
def test_requests_served_one_by_one_wait_as_lindley_says(load):
    one_s = service_s("gpipe")
    spec = spec_of("gpipe", pattern="poisson", rate_per_s=load / one_s, requests=60)
    report = predict(spec)
    arrived = arrivals_s(spec.workload, spec.seed)
    waits_s = [0.0]  # Lindley, "The theory of queues with a single server", 1952
    for before_s, now_s in pairwise(arrived):
        waits_s.append(max(0.0, waits_s[-1] + one_s - (now_s - before_s)))
    assert [request.queue_s for request in report.requests] == pytest.approx(waits_s, abs=1e-6)
    assert sum(waits_s) > 0


@pytest.mark.parametrize("name", NAMES)
def test_nobody_is_served_before_arriving_or_before_others_who_came_first(name):
    one_s = service_s(name)
    trace = trace_of(spec_of(name, pattern="poisson", rate_per_s=4 / one_s, max_batch=3))
    arrived, begun, finished = (
        times_s(trace, f"request_{what}") for what in ("arrived", "begun", "finished")
    )
    assert sorted(finished) == list(range(8))
    assert all(arrived[request] <= begun[request] < finished[request] for request in range(8))
    assert [begun[request] for request in range(8)] == sorted(begun.values())
    sizes = [sum(time_s == begun[request] for time_s in begun.values()) for request in range(8)]
    assert 1 < max(sizes) <= 3


@pytest.mark.parametrize("name", NAMES)
def test_a_wave_begins_when_the_last_one_ends_and_somebody_waits(name):
    trace = trace_of(spec_of(name, pattern="poisson", rate_per_s=2 / service_s(name), max_batch=2))
    arrived, begun, finished = (
        times_s(trace, f"request_{what}") for what in ("arrived", "begun", "finished")
    )
    for start_s in sorted(set(begun.values())):
        first = min(request for request in begun if begun[request] == start_s)
        free_s = max((finished[request] for request in range(first)), default=0.0)
        expected_s = max(arrived[first], free_s)
        assert expected_s - 1e-12 <= start_s <= expected_s + 0.2 * service_s(name)


def test_all_who_wait_and_are_equally_long_are_taken_together():
    rows = [(0.0, 5, 2), (0.0, 5, 2), (0.0, 5, 2), (0.0, 6, 2), (0.0, 6, 2), (0.0, 6, 3), (9.0, 6, 3)]
    trace = [{"at_s": at_s, "prompt_tokens": rows, "new_tokens": new} for at_s, rows, new in rows]
    spec = RunSpec(
        cluster=star([1e9] * 2),
        model=GPT2,
        strategy="megatron",
        params=by_rule("megatron"),
        workload=Workload.parse({"pattern": "trace", "trace": trace, "max_batch": 4}, "test"),
    )
    begun = times_s(trace_of(spec), "request_begun")
    together = {}
    for request, time_s in begun.items():
        together.setdefault(time_s, []).append(request)
    assert list(together.values()) == [[0, 1, 2], [3, 4], [5], [6]]
    assert begun[6] == 9.0
    answered = [len(request.token_s) for request in predict(spec).requests]
    assert answered == [new for _, _, new in rows]


def test_the_source_tells_the_others_only_where_they_cannot_know():
    alone = trace_of(spec_of("megatron", pattern="poisson", rate_per_s=1e6))
    batched = trace_of(spec_of("megatron", pattern="poisson", rate_per_s=1e6, max_batch=3))
    assert not told(alone)
    # the first finds nobody beside it, then 3, 3 and the last alone, whom nobody can join
    assert told(batched) == [FRAME_HEADER_BYTES + 8] * 3


def told(trace):
    """Bytes of every message about who is next: a header and one number of 64 bits."""
    return [x.bytes for x in trace if isinstance(x, Span) and x.kind == "send" and x.name == "admitted"]


@pytest.mark.parametrize("users", [1, 3])
def test_users_obey_the_response_time_law(users):
    think_s = 2 * service_s("gpipe")
    spec = spec_of("gpipe", pattern="users", users=users, think_s=think_s, requests=30)
    report = predict(spec)
    answers_s = sorted((r.arrival_s + r.answered_s, r.index) for r in report.requests)
    finished_s = {index: time_s for time_s, index in answers_s}
    for request in report.requests[users:]:
        assert request.arrival_s == pytest.approx(finished_s[request.index - users] + think_s)
    # N = X (R + Z): Denning and Buzen, "The operational analysis of queueing network models", 1978
    response_s = sum(r.answered_s for r in report.requests) / 30
    busy_s = report.latency_s + think_s
    assert 30 / busy_s * (response_s + think_s) == pytest.approx(users, rel=0.1)


def test_the_seed_decides_when_requests_arrive_and_the_rate_how_often():
    workload = Workload(prompt_tokens=1, pattern="poisson", rate_per_s=4.0, requests=4000)
    first = arrivals_s(workload, 1)
    assert first == arrivals_s(workload, 1) != arrivals_s(workload, 2)
    gaps = [b - a for a, b in pairwise((0.0, *first))]
    mean = sum(gaps) / 4000
    assert mean == pytest.approx(0.25, rel=0.05)
    assert sum((gap - mean) ** 2 for gap in gaps) / 4000 == pytest.approx(0.0625, rel=0.15)  # exponential


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"pattern": "poisson"}, "rate_per_s is missing for the pattern poisson"),
        ({"rate_per_s": 2}, "rate_per_s is given, and this is not the pattern poisson"),
        ({"pattern": "users", "users": 2, "rate_per_s": 1}, "this is not the pattern poisson"),
        ({"max_batch": 2}, "the pattern sporadic has no queue"),
        ({"think_s": 1.0}, "this is not the pattern users"),
        (
            {"pattern": "trace", "requests": 3, "trace": [{"at_s": 0, "prompt_tokens": 4, "new_tokens": 1}]},
            "trace: has 1 requests of up to 4 and 1 tokens",
        ),
        (
            {
                "pattern": "trace",
                "trace": [
                    {"at_s": 2, "prompt_tokens": 4, "new_tokens": 1},
                    {"at_s": 1, "prompt_tokens": 4, "new_tokens": 1},
                ],
            },
            "the times are not in order",
        ),
    ],
)
def test_a_workload_that_contradicts_itself_is_refused_in_a_sentence(fields, sentence):
    with pytest.raises(SpecError, match=sentence):
        Workload.parse({"prompt_tokens": 4} | fields if "trace" not in fields else fields, "workload")


def test_time_without_a_request_is_idle_and_no_waiting():
    one_s = service_s("gpipe")
    trace = [{"at_s": at_s * one_s, "prompt_tokens": 5, "new_tokens": 2} for at_s in (0.0, 0.5, 5.0)]
    alone, queued = (
        predict(spec_of("gpipe", **fields))
        for fields in (
            {"requests": 1},
            {"pattern": "trace", "trace": trace, "requests": 3},
        )
    )
    parts = queued.attribution
    assert parts.idle_s == pytest.approx(
        3 * one_s
    )  # from the second answer, at 2, to the third request, at 5
    assert parts.wait_s == pytest.approx(3 * alone.attribution.wait_s, abs=1e-9)
    assert sum(parts.model_dump().values()) == pytest.approx(queued.latency_s) == pytest.approx(6 * one_s)


@pytest.mark.parametrize("pattern", ["trace", "serve"])
def test_devices_that_help_without_weights_take_part_in_what_is_served_together(pattern):
    """EdgeFormer's neighbours attend heads and hold nothing."""
    trace = [{"at_s": 0.0, "prompt_tokens": 6, "new_tokens": 2}] * 2
    longest = {"prompt_tokens": 6, "new_tokens": 2} if pattern == "serve" else {}
    spec = RunSpec(
        cluster=star([1e9, 1e9, 1e9]),
        model=GPT2,
        strategy="edgeformer",
        params={"scheduling": "static", "t_max_mode": "none", "block_alloc": "fastest"},
        workload=Workload.parse({"pattern": pattern, "trace": trace, "max_batch": 2, **longest}, "test"),
    )
    prepared = prepare(spec)
    assert {held.device for held in prepared.plan.holdings} == {0}
    played, outcome = simulate(prepared)
    assert outcome.kind == "finished", outcome.sentence
    assert {item.device for item in played if isinstance(item, Span) and item.kind == "compute"} == {
        "d0",
        "d1",
        "d2",
    }
