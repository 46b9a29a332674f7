"""The limit on the time of a token: which token exceeds it, when the run ends, and what it says."""

from itertools import pairwise

import pytest

from engine.domain.errors import OutOfTime
from engine.domain.scenario import FreezeDevice
from engine.domain.trace import Mark
from engine.domain.workload import Workload
from engine.runs.predict import predict, prepare, simulate
from engine.worlds.common.token_limit import TokenLimit
from tests.support.recovery_cases import emitted, marks, spec_of


def arrived(time_s, request=0):
    return Mark(time_s, "request_arrived", "a", {"request": request})


def token(time_s, index, request=0):
    return Mark(time_s, "token_emitted", "a", {"request": request, "index": index, "token": 7})


def finished(time_s, request=0):
    return Mark(time_s, "request_finished", "a", {"request": request})


def limited(*items, limit_s=2.0):
    limit = TokenLimit(limit_s)
    for item in items:
        limit.record(item)
    return limit


def test_the_first_token_has_the_limit_from_the_arrival_and_the_others_from_the_one_before():
    assert limited(arrived(1.0)).due_s == 3.0
    limit = limited(arrived(1.0), token(2.5, 0))
    assert limit.due_s == 4.5
    limit.check(4.5)
    with pytest.raises(OutOfTime) as late:
        limit.check(4.6)
    assert str(late.value) == (
        "Token 1 of request 0 was not there 2 s after the one before it at 2.500 s: this is the limit on the "
        "time of a token."
    )
    assert late.value.time_s == 4.5


def test_a_token_that_came_too_late_is_named_as_it_is_read():
    with pytest.raises(OutOfTime, match=r"Token 0 of request 3 .* after the request arrived at 1\.000 s"):
        limited(arrived(1.0, request=3), token(3.1, 0, request=3))


def test_of_several_requests_the_one_that_waits_longest_counts():
    limit = limited(arrived(0.0), arrived(0.0, request=1), token(1.0, 0), token(1.5, 0, request=1))
    assert limit.due_s == 3.0
    limit.record(token(2.0, 1))
    assert limit.due_s == 3.5


def test_a_finished_request_waits_for_nothing():
    limit = limited(arrived(0.0), token(1.0, 0), finished(1.0))
    assert limit.due_s == float("inf")
    limit.check(1e9)


def test_without_a_limit_no_run_is_out_of_time():
    limit = limited(arrived(0.0), token(1e6, 0), limit_s=None)
    limit.check(1e9)


def limited_spec(limit_s, **more):
    workload = Workload(prompt_tokens=12, new_tokens=6, token_limit_s=limit_s)
    return spec_of("megatron", workload=workload, **more)


def test_a_prediction_ends_at_the_first_token_over_the_limit_with_the_tokens_before_it():
    trace, _ = simulate(prepare(spec_of("megatron")))
    times_s = [mark.time_s for mark in marks(trace, "token_emitted")]
    gaps_s = [times_s[0], *(b - a for a, b in pairwise(times_s))]
    assert max(gaps_s) == gaps_s[0]  # the prefill
    assert predict(limited_spec(gaps_s[0] * 1.001)).outcome.kind == "finished"
    outcome = predict(limited_spec(gaps_s[0] * 0.999)).outcome
    assert (outcome.kind, outcome.time_s) == ("out_of_time", pytest.approx(gaps_s[0] * 0.999))
    assert "Token 0 of request 0" in outcome.sentence


def test_the_time_that_a_failure_takes_counts():
    freeze = FreezeDevice(at_s=0.05, device="b")
    spec = limited_spec(0.5, changes=[freeze], silence_s=1.0)
    trace, outcome = simulate(prepare(spec))
    assert outcome.kind == "out_of_time"
    last_s = max((mark.time_s for mark in marks(trace, "token_emitted")), default=0.0)
    assert outcome.time_s == pytest.approx(last_s + 0.5)
    assert f"Token {len(emitted(trace))} of" in outcome.sentence
