"""Consecutive layers as one operation of the kernel: the same trace as operation by operation."""

from collections import Counter

import pytest

from bench.fuzz.draw import draw_spec
from engine.domain.errors import PlanError, SpecError
from engine.domain.trace import Span
from engine.runs.predict import play, predict, prepare, simulate
from engine.strategies.registry import STRATEGIES, strategy
from tests.support.small_cases import LLAMA, spec_of, star

CASES_PER_STRATEGY = 5
DEEP = LLAMA.model_copy(update={"num_layers": 9})
PIPELINE = spec_of("gpipe", DEEP, star([1e9, 2e9, 3e9]))


def items(trace):
    """What is in a trace, with all times, in no order."""
    return Counter(repr(item) for item in trace)


def prepared_cases(chosen):
    for index in range(CASES_PER_STRATEGY):
        try:
            yield prepare(draw_spec(11, index, (chosen,)))
        except (PlanError, SpecError):
            continue


def both(prepared):
    return [play(prepared, lambda: False, None, batched=batched) for batched in (True, False)]


@pytest.mark.parametrize("name", [one.name for one in STRATEGIES])
def test_batched_layers_give_the_trace_of_single_operations(name):
    for prepared in prepared_cases(strategy(name)):
        (batched, outcome), (single, expected) = both(prepared)
        assert outcome.kind == expected.kind
        if expected.kind == "finished":
            assert items(batched) == items(single)


def limited(spec, **workload):
    return spec.model_copy(update={"workload": spec.workload.model_copy(update=workload)})


def test_a_run_that_does_not_finish_has_the_trace_up_to_its_end_operation_by_operation():
    spec = PIPELINE
    prepared = prepare(limited(spec, token_limit_s=0.7 * predict(spec).ttft_s))
    trace, outcome = simulate(prepared)
    expected, _ = play(prepared, lambda: False, None, batched=False)
    assert outcome.kind == "out_of_time"
    assert trace == expected


def test_a_trace_is_in_the_order_of_time():
    spec = spec_of("gpipe", DEEP, star([1e9, 2e9, 3e9]), requests=3, pattern="bursty")
    trace, _ = simulate(prepare(spec))
    times_s = [item.end_s if isinstance(item, Span) else item.time_s for item in trace]
    assert times_s == sorted(times_s)


@pytest.mark.parametrize("name", ["gpipe", "edgeshard", "pipeline_offload", "lime"])
@pytest.mark.parametrize("pattern", ["sporadic", "bursty"])
def test_layers_of_a_device_with_several_programs_take_turns_with_what_the_others_compute(name, pattern):
    """The source has a program per request, which computes its logits while later layers are due."""
    spec = spec_of(name, DEEP, star([1e9, 2e9, 3e9]), requests=3, pattern=pattern)
    (batched, _), (single, _) = both(prepare(spec))
    assert items(batched) == items(single)
