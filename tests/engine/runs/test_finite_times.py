"""Requests that follow answers, while devices are absent, join and fail: no time is infinite or no number."""

import math
from dataclasses import astuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.domain.errors import RunError
from engine.domain.scenario import DropDevice, JoinDevice, Scenario
from engine.domain.spec import RunSpec
from engine.domain.trace import Mark
from engine.domain.values import numbers_in
from engine.domain.workload import Request, Workload
from engine.program.queue import _admitted
from engine.runs import predict as predictions
from engine.runs.failover import first_tokens
from engine.runs.predict import predict
from engine.runs.replan import recover, with_arrivals
from engine.schedulers.fcfs import Fcfs
from tests.support.small_cases import GPT2, star

CLUSTER = star([2e9, 1e9, 1e9])


def finite(data):
    return all(math.isfinite(number) for _, number in numbers_in(data))


@settings(max_examples=40)
@given(
    users=st.integers(1, 3),
    requests=st.integers(1, 6),
    max_batch=st.integers(1, 2),
    think_ms=st.sampled_from([0, 3]),
    moments_ms=st.lists(st.integers(1, 60), min_size=2, max_size=2),
    absent=st.booleans(),
    strategy=st.sampled_from(["gpipe", "megatron", "adaptlink"]),
)
def test_what_is_left_after_a_change_is_played_in_finite_time(
    users, requests, max_batch, think_ms, moments_ms, absent, strategy
):
    join, drop = (moment_ms / 1e3 for moment_ms in moments_ms)
    changes = (JoinDevice(at_s=join, device="d2"),) if absent else (DropDevice(at_s=join, device="d2"),)
    changes += (DropDevice(at_s=drop, device="d1"),)
    workload = Workload(
        prompt_tokens=5,
        new_tokens=4,
        pattern="users",
        users=users,
        requests=requests,
        max_batch=max_batch,
        think_s=think_ms / 1e3,
    )
    scenario = Scenario(changes=sorted(changes, key=lambda change: change.at_s))
    spec = RunSpec(cluster=CLUSTER, model=GPT2, strategy=strategy, workload=workload, scenario=scenario)
    replanned = []

    def recovered(spec, asked, run, event):
        left = recover(spec, asked, run, event)
        replanned.append((run.plan, left))
        return left

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(predictions, "recover", recovered)
        report = predict(spec)
    assert report.outcome.kind == "finished", report.outcome.sentence
    assert finite(report)
    for plan, left in replanned:
        if left:  # as a real run plays it, to find who sends to whom
            trace = first_tokens(spec, plan, left)
            assert finite([list(astuple(item)) for item in trace])
            answered = {
                item.facts["request"] for item in trace if getattr(item, "name", "") == "token_emitted"
            }
            assert answered == {request.index for request in left}


def test_who_follows_an_answer_that_was_given_arrives_when_its_user_has_thought():
    """By hand, two users: request 2 follows 0, which was answered at 1.5 s, and request 3 follows 1."""
    workload = Workload(prompt_tokens=2, new_tokens=2, pattern="users", users=2, requests=4, think_s=0.25)
    left = [Request(index=index, tokens=(1,), arrival_s=0.0 if index < 2 else None) for index in (1, 2, 3)]
    trace = [Mark(1.5, "request_finished", "d0", {"request": 0})]
    found = with_arrivals(workload, left, trace)
    assert [request.arrival_s for request in found] == [0.0, 1.75, None]


def test_a_request_that_would_never_arrive_is_an_error_and_not_the_end_of_time():
    class Source:
        def arrival_s(self, request):
            return None

    waiting = _admitted(None, [Request(index=4, tokens=(1,), arrival_s=None)], [], Source(), Fcfs())
    with pytest.raises(RunError, match="request 4 follows an answer that nobody computes"):
        waiting.send(None)
