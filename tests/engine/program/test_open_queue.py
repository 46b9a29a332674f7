"""Requests that people send while a run goes on: taken in their order, checked, cancelled, and predicted."""

import pytest

from bench.fuzz.check import check
from engine.domain.errors import SpecError
from engine.domain.scenario import DropDevice, Scenario
from engine.domain.spec import RunSpec
from engine.domain.trace import Mark, Span
from engine.domain.workload import Request, Workload
from engine.models.inputs.prompts import requests_of
from engine.program.frames import FRAME_HEADER_BYTES
from engine.program.queue import in_turn
from engine.program.wave import CHECKED_TOKENS
from engine.runs.predict import predict, prepare, simulate
from engine.strategies.registry import STRATEGIES, by_rule, drafted, strategy
from tests.support.small_cases import GPT2, star

NAMES = [chosen.name for chosen in STRATEGIES]


def spec_of(name="gpipe", rows=(), **workload):
    trace = [{"at_s": at_s, "prompt_tokens": size, "new_tokens": new} for at_s, size, new in rows]
    given = {
        "pattern": "serve",
        "prompt_tokens": 5,
        "new_tokens": 20,
        "requests": 9,
        "scheduler": "fcfs",
        "max_batch": 1,
        "trace": trace,
    } | workload
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


def messages(trace, name):
    """Bytes of every message of this name."""
    return [x.bytes for x in trace if isinstance(x, Span) and x.kind == "send" and x.name == name]


def test_before_the_run_as_many_of_the_longest_requests_as_are_served_together_are_predicted():
    report = predict(spec_of(max_batch=3))
    assert [(r.arrival_s, r.queue_s, len(r.token_s)) for r in report.requests] == [(0.0, 0.0, 20)] * 3
    assert [len(request.tokens) for request in requests_of(spec_of(max_batch=3))] == [5] * 3


@pytest.mark.parametrize("name", NAMES)
def test_recorded_requests_are_answered_in_their_order_and_in_full(name):
    rows = [(0.0, 3, 4), (0.0, 5, 2), (1e-4, 5, 2), (9.0, 2, CHECKED_TOKENS + 1)]
    trace = trace_of(spec_of(name, rows, max_batch=2))
    arrived, begun, finished = (
        times_s(trace, f"request_{what}") for what in ("arrived", "begun", "finished")
    )
    assert [arrived[request] for request in range(4)] == [0.0, 0.0, 1e-4, 9.0]
    assert begun[0] == 0.0 < begun[1] == begun[2] < finished[1] <= 9.0 == begun[3]
    tokens = [m.facts["request"] for m in trace if isinstance(m, Mark) and m.name == "token_emitted"]
    assert [tokens.count(request) for request in range(4)] == [new for _, _, new in rows]


def test_the_source_says_what_is_next_when_the_service_ends_and_whether_a_wave_goes_on():
    rows = [(0.0, 3, 2), (0.0, 3, 2), (5.0, 5, 2 * CHECKED_TOKENS + 1)]
    trace = trace_of(spec_of("megatron", rows, max_batch=2))
    number = 8  # bytes; three lengths and the number of each request
    assert messages(trace, "admitted") == [FRAME_HEADER_BYTES + size * number for size in (3 + 2, 3 + 1, 3)]
    assert messages(trace, "goes_on") == [FRAME_HEADER_BYTES + number] * 2


def steps_of(spec):
    return [m.facts for m in trace_of(spec) if isinstance(m, Mark) and m.name == "step_scheduled"]


def test_who_asks_while_others_are_answered_joins_them_at_the_next_token():
    # worked out by hand: two at time 0 whose prompts take one step, one that comes during it
    rows = [(0.0, 3, 4), (0.0, 5, 3), (1e-5, 2, 3)]
    steps = steps_of(spec_of("single", rows, scheduler="continuous", max_batch=3))
    assert [step["requests"] for step in steps] == [[0, 1], [0, 1, 2], [0, 1, 2], [0, 2]]
    assert [step["rows"] for step in steps] == [[3, 5], [1, 1, 2], [1, 1, 1], [1, 1]]


def test_people_take_turns_also_where_requests_join_others():
    trace = [{"at_s": 0.0, "prompt_tokens": 5, "new_tokens": 2, "person": "ann"}] * 4
    trace.append({"at_s": 1e-6, "prompt_tokens": 5, "new_tokens": 2, "person": "bob"})
    steps = steps_of(spec_of("single", trace=trace, scheduler="continuous", max_batch=2))
    assert [step["requests"] for step in steps] == [[0, 1], [0, 1], [4, 2], [4, 2], [3], [3]]


@pytest.mark.parametrize("name", NAMES)
def test_a_service_lets_requests_join_where_the_method_can_and_else_says_why_not(name):
    workload = {"pattern": "serve", "prompt_tokens": 5, "new_tokens": 20, "requests": 9}
    spec = spec_of(name).model_copy(update={"workload": Workload.parse(workload, "test")})
    prepared = prepare(spec)
    chosen, reason = prepared.spec.workload, strategy(name).why_not_ragged(prepared.plan)
    assert chosen.max_batch == 4
    if chosen.scheduler == "fcfs":
        (note,) = predict(spec).fidelity.notes
        assert reason is not None and note.endswith(reason)
    else:
        assert chosen.scheduler == ("disaggregated" if name == "disaggregated" else "continuous")
        assert not predict(spec).fidelity.notes and (reason is None) == (name != "disaggregated")


@pytest.mark.parametrize("scheduler", ["continuous", "chunked", "disaggregated"])
def test_recorded_requests_that_join_are_answered_in_full(scheduler):
    rows = [(0.0, 3, 4), (0.0, 5, 2), (1e-4, 5, 2), (9.0, 2, CHECKED_TOKENS + 1)]
    name = "disaggregated" if scheduler == "disaggregated" else "gpipe"
    trace = trace_of(spec_of(name, rows, max_batch=2, scheduler=scheduler))
    tokens = [m.facts["request"] for m in trace if isinstance(m, Mark) and m.name == "token_emitted"]
    assert [tokens.count(request) for request in range(4)] == [new for _, _, new in rows]
    assert times_s(trace, "request_begun")[3] == 9.0


@pytest.mark.parametrize("scheduler", ["fcfs", "continuous"])
def test_a_device_that_fails_after_the_last_arrival_leaves_no_request_unanswered(scheduler):
    rows = [(0.0, 3, 4), (0.0, 5, 2), (1e-4, 5, 2)]
    spec = spec_of("gpipe", rows, max_batch=2, scheduler=scheduler)
    whole_s = predict(spec).latency_s
    fails = Scenario(changes=[DropDevice(at_s=whole_s / 2, device="d1")])
    report = predict(spec.model_copy(update={"scenario": fails}))
    assert report.recoveries
    assert [len(request.token_s) for request in report.requests] == [4, 2, 2]


@pytest.mark.parametrize(
    ("name", "params"), [*((name, {}) for name in NAMES), ("voltage", {"decode": "recompute"})]
)
def test_answers_longer_than_the_source_waits_to_ask_who_has_gone_have_the_right_tokens(name, params):
    """Every few tokens all devices ask whether the requests are still wanted: their KV caches stay."""
    spec = spec_of(name, [(0.0, 3, CHECKED_TOKENS + 4), (0.0, 3, CHECKED_TOKENS + 4)], max_batch=2)
    params = spec.params | strategy(name).lossless_params() | params
    found = check(spec.model_copy(update={"params": params}))
    assert found.end == "equal", found


def test_a_recorded_prompt_is_what_was_asked():
    workload = {"trace": [{"at_s": 0.5, "prompt_tokens": 2, "new_tokens": 1, "tokens": [7, 8]}]}
    (request,) = requests_of(spec_of(**workload))
    assert (request.tokens, request.arrival_s, request.new_tokens) == ((7, 8), 0.5, 1)


def test_people_take_turns_and_each_persons_requests_keep_their_order():
    people = ["ann", "ann", "ann", "bob", "cid", "bob"]
    queue = [Request(index=index, tokens=(0,), person=person) for index, person in enumerate(people)]
    assert [request.index for request in in_turn(queue, {})] == [0, 3, 4, 1, 5, 2]
    assert [request.index for request in in_turn(queue, {"ann": 7, "bob": 3})] == [4, 3, 0, 5, 1, 2]


def test_who_sends_one_request_waits_for_one_answer_of_who_sends_five():
    trace = [{"at_s": 0.0, "prompt_tokens": 5, "new_tokens": 2, "person": "ann"}] * 5
    trace.append({"at_s": 1e-6, "prompt_tokens": 5, "new_tokens": 2, "person": "bob"})
    begun = times_s(trace_of(spec_of(trace=trace)), "request_begun")
    assert sorted(begun, key=begun.get) == [0, 5, 1, 2, 3, 4]


def test_requests_of_the_same_lengths_are_served_together_though_others_stand_between_them():
    rows = [("ann", 5), ("bob", 3), ("ann", 5), ("bob", 3)]
    trace = [{"at_s": 0.0, "prompt_tokens": n, "new_tokens": 2, "person": who} for who, n in rows]
    begun = times_s(trace_of(spec_of(trace=trace, max_batch=4)), "request_begun")
    assert begun[0] == begun[2] < begun[1] == begun[3]


@pytest.mark.parametrize(
    "workload",
    [
        {"prompt_tokens": None, "prompt": "hello"},
        {"new_tokens": 0},
        {"rate_per_s": 3.0},
        {"trace": [{"at_s": 0, "prompt_tokens": 2, "new_tokens": 1, "tokens": [7]}]},
    ],
)
def test_an_open_workload_states_the_longest_request_and_nothing_else(workload):
    with pytest.raises(SpecError):
        spec_of(**workload)
