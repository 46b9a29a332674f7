"""A rehearsal says what dilation a run needs here and now; the run's beginning, whether it was enough."""

from dataclasses import replace

import pytest

from engine.domain.events import Logged, Span, StateChanged, to_json
from engine.domain.model import with_draft
from engine.domain.scenario import Scenario, SlowDevice
from engine.domain.spec import RunSpec
from engine.domain.trace import Mark
from engine.domain.workload import Workload
from engine.models import catalogue
from engine.runs.attempts import Attempt
from engine.runs.lateness import OPERATIONS, LatenessWatch
from engine.runs.predict import prepare, simulate
from engine.runs.rehearsal import COST_WALL_S, rehearsal_of
from tests.engine.runs.test_real_supervisor import STATS, Case
from tests.support.fake_devices import small_spec
from tests.support.small_cases import star

AUTO = small_spec().model_copy(update={"dilation": "auto"})
PREPARED = prepare(AUTO)
EXPECTED, _ = simulate(PREPARED)


def later(trace, factor):
    """The same run, all times `factor` times as long."""
    return [
        replace(item, start_s=item.start_s * factor, end_s=item.end_s * factor)
        if isinstance(item, Span)
        else replace(
            item,
            time_s=item.time_s * factor,
            facts=item.facts
            | {key: value * factor for key, value in item.facts.items() if key == "latency_s"},
        )
        for item in trace
    ]


def test_what_is_late_may_use_half_of_the_limits_of_a_run():
    rehearsal = rehearsal_of(PREPARED, EXPECTED, Attempt(2.0, 5.0))
    played = rehearsal.predicted.trace
    assert rehearsal.needed(played, {"d0": STATS}, 2.0) == 2.0
    assert rehearsal.needed(later(played, 1.04), {"d0": STATS}, 2.0) == 2.0
    # 10 % late, where a run may be 10 and a rehearsal 5: twice the dilation
    assert rehearsal.needed(later(played, 1.0999), {"d0": STATS}, 2.0) == 4.0
    assert rehearsal.needed(later(played, 1.5), {"d0": STATS}, 2.0) == 5.0, "the attempt allows no more"


def test_a_refused_draft_is_not_lateness_and_what_is_late_beside_it_is():
    def drafted(likely):
        model = with_draft(catalogue.resolve("tiny-llama")[0], catalogue.resolve("tiny-qwen2")[0], likely)
        workload = Workload(prompt_tokens=9, new_tokens=20)
        return RunSpec(
            cluster=star([1e9, 4e10]), model=model, strategy="speculative", workload=workload, dilation="auto"
        )

    prepared = prepare(drafted(1.0))
    rehearsal = rehearsal_of(prepared, simulate(prepared)[0], Attempt(2.0, 50.0))
    refusing = rehearsal.prepared.spec.model_copy(update={"model": drafted(0.0).model})
    played, _ = simulate(rehearsal.prepared._replace(spec=refusing))
    pacing = {item.device: STATS for item in played if isinstance(item, Span)}
    ends_s = [
        max(item.end_s for item in one if isinstance(item, Span))
        for one in (rehearsal.predicted.trace, played)
    ]
    assert ends_s[1] > 1.2 * ends_s[0], "more rounds"
    assert rehearsal.needed(played, pacing, 2.0) == 2.0
    assert rehearsal.needed(later(played, 1.0999), pacing, 2.0) == pytest.approx(4.0, rel=0.01)


def test_few_tokens_of_the_first_request_are_played_and_their_requests_are_there_at_once():
    workload = AUTO.workload.model_copy(
        update={"new_tokens": 50, "requests": 3, "pattern": "poisson", "rate_per_s": 1.0}
    )
    prepared = prepare(AUTO.model_copy(update={"workload": workload}))
    rehearsal = rehearsal_of(prepared, simulate(prepared)[0], Attempt(2.0, 5.0))
    assert [(request.index, request.arrival_s) for request in rehearsal.requests] == [(0, 0.0)]
    assert (
        len(rehearsal.predicted.report.output_tokens or rehearsal.predicted.report.requests[0].token_s) == 4
    )


def test_no_run_rehearses_whose_dilation_is_given_or_where_it_would_take_too_long():
    assert rehearsal_of(PREPARED._replace(spec=small_spec()), EXPECTED, Attempt(2.0, 5.0)) is None
    whole_s = max(item.end_s for item in EXPECTED if isinstance(item, Span))
    once, twice = COST_WALL_S / whole_s, COST_WALL_S / 2.1 / whole_s
    assert rehearsal_of(PREPARED, EXPECTED, Attempt(1.1 * once, 1e9)) is None
    assert [rehearsal_of(PREPARED, EXPECTED, Attempt(at, 1e9)).times for at in (0.9 * once, twice)] == [1, 2]


# The supervisor ---------------------------------------------------------------------------------
def items_of(trace, device):
    return to_json([item for item in trace if item.device == device])


@pytest.mark.parametrize(
    ("factors", "dilation"),
    [
        ((1.0,), 2.0),
        ((1.1249, 1.0), 2.0),  # what was late only once was an accident, or cold
        ((1.1249, 1.0999), 4.0),
        ((1.0999, 1.1249), 4.0),
    ],
)
def test_the_least_dilation_that_a_rehearsal_asked_for_is_set_on_links_and_devices(factors, dilation):
    rehearsal = rehearsal_of(PREPARED, EXPECTED, Attempt(2.0, 5.0))
    rounds = iter(factors)
    case = Case()
    case.supervisor.rehearsal = rehearsal
    dilated, started, epochs = [], [], []
    case.supervisor.network.dilate = dilated.append

    def send_all(**message):
        assert message["type"] == "rehearse" and message["dilation"] == 2.0
        epochs.append(message["epoch"])
        trace = later(rehearsal.predicted.trace, next(rounds))
        for rank, device in case.pool.devices.items():
            device.report(type="rehearsed", rehearsal=STATS, items=items_of(trace, f"d{rank}"))

    case.pool.send_all = send_all
    start = case.pool.start
    case.pool.start = lambda start_s, dilation, begin_s: (
        started.append(dilation),
        start(start_s, dilation, begin_s),
    )
    result = case.run()
    assert started == [dilation] and result.dilation == dilation
    assert epochs == [-1, -2][: len(factors)], "no messages of one rehearsal count in another"
    assert dilated == ([dilation] if dilation != 2.0 else [])
    assert result.trace == [] and case.of(Span) == case.of(Mark) == []
    assert [(event.state, event.detail) for event in case.of(StateChanged)] == [
        ("loading", "rehearsing"),
        ("running", ""),
    ]


def test_a_change_at_0_s_comes_after_the_rehearsal_and_ends_what_is_watched():
    slower = Scenario(changes=(SlowDevice(at_s=0.0, device="d1", factor=3.0),))
    case = Case(scenario=slower)
    case.supervisor.rehearsal = rehearsal = rehearsal_of(PREPARED, EXPECTED, Attempt(2.0, 5.0))
    case.supervisor.expected = EXPECTED
    send_all, sent = case.pool.send_all, []

    def record(**message):
        sent.append(message["type"])
        if message["type"] != "rehearse":
            return send_all(**message)
        for rank, device in case.pool.devices.items():
            items = items_of(rehearsal.predicted.trace, f"d{rank}")
            device.report(type="rehearsed", rehearsal=STATS, items=items)

    case.pool.send_all = record
    case.run()
    assert sent == ["rehearse", "change"]
    assert case.supervisor.lateness.until_s == 0.0


@pytest.mark.parametrize(("largest", "is_watched"), [(4.0, False), (5.0, True)])
def test_a_run_whose_rehearsal_has_set_the_largest_dilation_is_not_ended_early(largest, is_watched):
    case = Case()
    case.supervisor.rehearsal = rehearsal = rehearsal_of(PREPARED, EXPECTED, Attempt(2.0, 4.0))
    case.supervisor.expected, case.supervisor.most_dilation = EXPECTED, largest

    def send_all(**message):
        for rank, device in case.pool.devices.items():
            items = items_of(later(rehearsal.predicted.trace, 1.5), f"d{rank}")
            device.report(type="rehearsed", rehearsal=STATS, items=items)

    case.pool.send_all = send_all
    assert case.run().dilation == 4.0
    assert (case.supervisor.lateness is not None) is is_watched


# The beginning of the run -----------------------------------------------------------------------
def watched(trace, changes_s=(), dilation=0.001):
    """The dilation that a watch asks for after `trace`; at this dilation all of it is the beginning."""
    watch = LatenessWatch(EXPECTED, dilation, changes_s)
    for item in trace:
        watch.record(item)
    return watch.needed


def test_a_run_whose_first_token_or_operations_are_late_is_to_begin_again():
    assert watched(EXPECTED) is None
    assert watched(later(EXPECTED, 1.09)) is None
    assert watched(later([item for item in EXPECTED if isinstance(item, Mark)], 1.3)) is not None
    operations = [item for item in EXPECTED if isinstance(item, Span) and item.kind == "compute"]
    many = (operations * OPERATIONS)[:OPERATIONS]
    assert watched(later(many, 1.3)) is not None
    assert watched(later(many[1:], 1.3)) is None, "too few to say so"


def test_a_run_is_not_ended_for_what_its_data_decided():
    """Experts were chosen evenly in the prediction, and in the run all of them on one device: as many
    operations, others, and the first token comes later.
    """

    def played(**choices):
        model = catalogue.resolve("tiny-qwen3-moe")[0].model_copy(update=choices)
        workload = Workload(prompt_tokens=32, new_tokens=20)
        spec = RunSpec(cluster=star([1e8] * 2), model=model, strategy="expert_parallel", workload=workload)
        return simulate(prepare(spec))[0]

    load = [0] * catalogue.resolve("tiny-qwen3-moe")[0].num_experts
    expected, run = played(), played(expert_load=(1, 1, 1, *load[3:]))
    firsts_s = [
        next(item.facts["latency_s"] for item in one if isinstance(item, Mark) and "latency_s" in item.facts)
        for one in (expected, run)
    ]
    assert firsts_s[1] > 1.1 * firsts_s[0]
    watch, late = LatenessWatch(expected, 0.001), LatenessWatch(expected, 0.001)
    for item in run:
        watch.record(item)
    for item in later(run, 1.3):
        late.record(item)
    assert watch.needed is None
    assert late.needed is not None, "the same operations took longer"


def test_a_run_is_not_ended_for_operations_that_are_a_negligible_part_of_it():
    operations = [item for item in EXPECTED if isinstance(item, Span) and item.kind == "compute"]
    late = later((operations * OPERATIONS)[:OPERATIONS], 1.3)
    busy_s = sum(item.end_s - item.start_s for item in late)
    needed = []
    for whole_s in (99 * busy_s, 101 * busy_s):
        watch = LatenessWatch([*EXPECTED, Mark(whole_s, "request_finished", "d0")], 0.001)
        for item in late:
            watch.record(item)
        needed.append(watch.needed)
    assert needed[0] is not None and needed[1] is None


def test_neither_what_comes_after_the_beginning_counts_nor_what_follows_a_change():
    late = later(EXPECTED, 1.3)
    assert watched(late, changes_s=(0.0,)) is None
    assert watched([item for item in late if isinstance(item, Mark)][-1:], dilation=1e9) is None


@pytest.mark.parametrize("live", [False, True])
def test_a_late_run_is_ended_unless_somebody_has_changed_something(live):
    first = next(
        item for item in later(EXPECTED, 1.3) if isinstance(item, Mark) and "latency_s" in item.facts
    )
    trace = {"type": "trace", "items": items_of([first], first.device)}
    case = Case({"start": [trace, {"type": "finished", "pacing": STATS}]})
    case.supervisor.expected = EXPECTED
    case.supervisor.active.dilation = 0.001
    case.supervisor.changed_live = live
    result = case.run()
    assert (result.needed_dilation is None) == live
    assert result.outcome.kind == ("finished" if live else "cancelled")
    said = [event.text for event in case.of(Logged) if "it goes on" in event.text]
    assert len(said) == live
