"""Which trials of a campaign are good: a device that does other work than predicted makes one bad."""

from dataclasses import replace

import pytest

from bench.chaos.kills import Trial, trial
from bench.chaos.verdict import GOOD, judge, unexplained_failure
from engine.domain.report import Correctness, Outcome
from engine.domain.scenario import DropDevice, JoinDevice, LinkDown, Scenario
from engine.domain.trace import Mark, Span
from engine.domain.workload import Workload
from engine.reports.fold import fold
from engine.runs.predict import prepare, simulate
from tests.support.recovery_cases import halfway_s, spec_of

NEW_TOKENS = 12
LONGER = Workload(prompt_tokens=12, new_tokens=NEW_TOKENS)
AT_S = halfway_s("megatron")
CHANGES = (DropDevice(at_s=AT_S, device="b"), JoinDevice(at_s=AT_S + 0.03, device="b"))


def played(changes=CHANGES):
    """A trial and a trace as a real run of it would give."""
    spec = spec_of("megatron", changes, workload=LONGER)
    trace, outcome = simulate(prepare(spec))
    assert outcome.kind == "finished"
    return Trial(1, 0, spec), trace


def report_of(one, trace, **more):
    prepared = prepare(one.spec)
    report = fold(one.spec, prepared.plan, trace, world="emulated", outcome=Outcome())
    correct = Correctness(checked=True, ok=True)
    return report.model_copy(update={"correctness": correct, "scenario": one.spec.scenario, **more})


def verdict(one, trace, **more):
    return judge(one, report_of(one, trace, **more), trace)


def test_a_run_that_did_what_is_predicted_is_good():
    one, trace = played()
    assert verdict(one, trace) == ("finished", "")


def test_a_joiner_that_computes_nothing_makes_the_trial_bad():
    one, trace = played()
    joined_s = next(m.time_s for m in trace if isinstance(m, Mark) and m.name == "device_joined")
    idle = [x for x in trace if not (isinstance(x, Span) and x.device == "b" and x.end_s > joined_s)]
    found = verdict(one, idle)
    assert found.ending == "other work" and found.ending not in GOOD
    assert "b did 0 operations, 0 FLOP, 0 B sent; predicted are" in found.why


def test_a_run_that_never_planned_with_the_joiner_is_bad():
    one, trace = played()
    _, without = played(CHANGES[:1])
    (joined,) = (item for item in trace if isinstance(item, Mark) and item.name == "device_joined")
    found = verdict(one, [*without, joined])
    assert found == ("other work", "it ended under plan 1, and its prediction under plan 2")


def test_a_fault_that_meets_the_run_one_pass_later_is_no_other_work():
    change = DropDevice(at_s=AT_S, device="b")
    one, _ = played([change])
    times_s = token_times_s()
    step_s = times_s[3] - times_s[2]
    _, later = played([change.model_copy(update={"at_s": AT_S + step_s})])
    early = [
        replace(item, time_s=AT_S) if isinstance(item, Mark) and item.name == "device_lost" else item
        for item in later
    ]
    assert [mark.time_s for mark in early if isinstance(mark, Mark) and mark.name == "device_lost"] == [AT_S]
    assert verdict(one, early) == ("finished", "")


@pytest.mark.parametrize("passes", [2, 3])
def test_a_busy_machine_may_be_some_passes_behind_when_a_fault_meets_the_run(passes):
    """And only as many passes as it is behind may stand in the run or in its prediction alone."""
    times_s = token_times_s()
    behind_s = passes * (times_s[3] - times_s[2])
    one, _ = played([DropDevice(at_s=AT_S, device="b")])
    _, sooner = played([DropDevice(at_s=AT_S - behind_s, device="b")])
    assert verdict(one, [later(item, behind_s) for item in sooner]) == ("finished", "")
    as_fast = [later(item, behind_s) if is_lost(item) else item for item in sooner]
    assert verdict(one, as_fast).ending == "other work"


def later(item, by_s):
    if isinstance(item, Mark):
        return replace(item, time_s=item.time_s + by_s)
    return replace(item, start_s=item.start_s + by_s, end_s=item.end_s + by_s)


def is_lost(item):
    return isinstance(item, Mark) and item.name == "device_lost"


def token_times_s():
    trace, _ = simulate(prepare(spec_of("megatron", workload=LONGER)))
    return [item.time_s for item in trace if isinstance(item, Mark) and item.name == "token_emitted"]


def test_a_device_that_is_declared_failed_without_a_reason_is_named():
    spec = spec_of("megatron")
    lost = Mark(0.5, "loss_detected", "c", {"how": "killed", "since_s": 0.4})
    assert unexplained_failure(spec, Scenario(), [lost]) == (
        "c was declared failed at 0.500 s, and nothing had happened to it"
    )
    explained = [
        (DropDevice(at_s=0.4, device="c"),),
        (LinkDown(at_s=0.4, link="c--s1"),),
    ]
    for changes in explained:
        assert unexplained_failure(spec, Scenario(changes=changes), [lost]) == ""
    again = (*explained[0], JoinDevice(at_s=0.45, device="c"))
    assert "nothing had happened" in unexplained_failure(spec, Scenario(changes=again), [lost])


def test_a_run_with_all_its_work_is_bad_if_a_device_was_declared_failed_without_a_reason():
    one, trace = played(())
    lost = Mark(token_times_s()[-1], "loss_detected", "c", {"how": "killed", "since_s": 0.0})
    found = verdict(one, [*trace, lost])
    assert found.ending == "other work" and "nothing had happened" in found.why


def test_without_faults_a_single_pass_that_the_trace_lacks_is_other_work():
    one, trace = played(())

    def ends_pass(item):
        return isinstance(item, Mark) and item.name == "token_emitted" and item.facts["index"] == 5

    found = judge(one, report_of(one, trace), [item for item in trace if not ends_pass(item)])
    assert found.ending == "other work" and "token 5 of request 0" in found.why


@pytest.mark.parametrize(
    ("more", "ending"),
    [
        ({"correctness": Correctness(checked=True, ok=False, why="token 3 differs")}, "wrong tokens"),
        ({"outcome": Outcome(kind="deadlock", sentence="Deadlock at 1 s.")}, "hung"),
        ({"outcome": Outcome(kind="failed", sentence="Broken.")}, "failed"),
        ({"outcome": Outcome(kind="peer_lost", sentence="a failed, and it is the source.")}, "ended clearly"),
        ({"outcome": Outcome(kind="peer_lost", sentence="b failed.")}, "failed"),
    ],
)
def test_other_endings_are_told_apart(more, ending):
    one, trace = played(())
    assert verdict(one, trace, **more).ending == ending


def test_a_trial_is_the_same_for_the_same_numbers():
    assert trial(7, 3) == trial(7, 3) != trial(7, 4)
