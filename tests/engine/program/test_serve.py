"""The serving loop: which requests run together, what a step says, what the source marks."""

import pytest

from engine.domain.trace import Mark
from engine.domain.workload import Request
from engine.program.serve import waves
from engine.program.wave import batches_of, step_of
from engine.strategies.registry import STRATEGIES, strategy
from tests.support.small_cases import BERT, GPT2, plan_of, play, prompts, spec_of, star


def indices(found):
    return [[[request.index for request in batch] for batch in wave] for wave in found]


@pytest.mark.parametrize(
    ("name", "pattern", "expected"),
    [
        ("gpipe", "sporadic", [[[0]], [[1]], [[2]]]),
        ("gpipe", "bursty", [[[0], [1], [2]]]),
        ("megatron", "sporadic", [[[0]], [[1]], [[2]]]),
        ("megatron", "bursty", [[[0, 1, 2]]]),
    ],
)
def test_bursts_are_one_batch_or_micro_batches(name, pattern, expected):
    spec = spec_of(name, GPT2, star([1e10] * 2), requests=3, pattern=pattern)
    together = strategy(name).together(plan_of(spec))
    assert indices(waves(together, spec.workload, prompts(spec))) == expected


def test_a_micro_batch_has_requests_that_are_equally_far():
    """Some got more tokens than others before a device failed."""
    ones = [Request(index=i, tokens=(1, 2), emitted=emitted) for i, emitted in enumerate((3, 3, 3, 2, 2))]
    found = [[request.index for request in batch] for batch in batches_of(ones, 2)]
    assert found == [[0, 1], [2], [3, 4]]
    assert [len(batch) for batch in batches_of(ones, None)] == [5]


def test_steps_count_the_rows_that_are_cached_before_them():
    batch = prompts(spec_of("single", GPT2, star([1e10]), rows=10, requests=2))
    prefill, first, second = (step_of(batch, index, 3) for index in range(3))
    assert (prefill.phase, prefill.start, prefill.rows, prefill.batch) == ("prefill", 0, 10, 2)
    assert (first.phase, first.start, first.rows, first.index) == ("decode", 10, 1, 1)
    assert (second.start, second.requests, second.cache) == (11, (0, 1), "r0")
    assert step_of(batch, 0, 0).cache == ""


def marks(trace, name):
    return [(m.time_s, m.facts["request"]) for m in trace if isinstance(m, Mark) and m.name == name]


@pytest.mark.parametrize("name", [chosen.name for chosen in STRATEGIES])
@pytest.mark.parametrize("pattern", ["sporadic", "bursty"])
def test_every_request_arrives_gets_its_tokens_and_finishes(name, pattern):
    trace = play(spec_of(name, GPT2, star([1e10] * 2), requests=3, pattern=pattern))
    arrived, finished = marks(trace, "request_arrived"), marks(trace, "request_finished")
    tokens = marks(trace, "token_emitted")
    assert [request for _, request in arrived] == [0, 1, 2]
    assert sorted(request for _, request in finished) == [0, 1, 2]
    for (arrival_s, request), (end_s, _) in zip(arrived, sorted(finished, key=lambda f: f[1]), strict=True):
        mine = [time_s for time_s, owner in tokens if owner == request]
        assert len(mine) == 4 and mine == sorted(mine)
        assert arrival_s < mine[0] and mine[-1] == end_s
    if pattern == "bursty":
        assert {time_s for time_s, _ in arrived} == {0.0}
    else:
        assert [time_s for time_s, _ in arrived[1:]] == [time_s for time_s, _ in finished[:-1]]


def test_sequences_one_after_the_other_reuse_the_memory():
    peaks = []
    for requests in (1, 3):
        trace = play(spec_of("single", GPT2, star([1e10]), requests=requests))
        peaks.append(max(m.facts["peak_bytes"] for m in trace if isinstance(m, Mark) and m.name == "memory"))
    assert peaks[0] == peaks[1]


def test_an_encoder_finishes_after_one_pass_without_tokens():
    trace = play(spec_of("voltage", BERT, star([1e10] * 3), requests=2))
    assert marks(trace, "token_emitted") == []
    assert [request for _, request in marks(trace, "request_finished")] == [0, 1]


def test_a_bursts_micro_batches_all_get_a_token_before_any_gets_the_next():
    spec = spec_of("gpipe", GPT2, star([1e10] * 2), requests=3, pattern="bursty")
    trace = play(spec, plan_of(spec))
    order = [m.facts["index"] for m in trace if isinstance(m, Mark) and m.name == "token_emitted"]
    assert order == sorted(order)
