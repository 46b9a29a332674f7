"""What is left to do after a failure, and for which workload the strategy plans again."""

import pytest

from engine.domain.errors import EdgeLoomError, PeerFailed, PlanError, RunError
from engine.domain.spec import RunSpec
from engine.domain.trace import Mark
from engine.domain.workload import Request, Workload
from engine.runs.replan import UNKNOWN_TOKEN, no_recovery, recover, replan, unfinished
from engine.strategies.registry import strategy
from tests.support.small_cases import BERT, GPT2, star

CLUSTER = star([1e9, 1e9])
PROMPTS = (Request(index=0, tokens=(1, 2)), Request(index=1, tokens=(3, 4)))


def spec_of(model=GPT2, **workload):
    return RunSpec(cluster=CLUSTER, model=model, strategy="gpipe", workload=Workload(**workload))


def plan_of(spec):
    chosen = strategy(spec.strategy)
    return chosen.plan(spec.cluster, spec.model, spec.workload, chosen.Params())


def emitted(request, index, token):
    return Mark(1.0, "token_emitted", "d0", {"request": request, "index": index, "token": token})


def test_a_request_goes_on_with_its_prompt_and_its_tokens_in_their_order():
    trace = [emitted(0, 1, 8), emitted(0, 0, 7), emitted(1, 0, 9)]
    assert unfinished(PROMPTS, trace) == (
        Request(index=0, tokens=(1, 2, 7, 8), emitted=2),
        Request(index=1, tokens=(3, 4, 9), emitted=1),
    )


def test_tokens_that_an_earlier_plan_kept_are_not_kept_twice():
    before = (Request(index=0, tokens=(1, 2, 7), emitted=1),)
    trace = [emitted(0, 0, 7), emitted(0, 1, 8)]
    assert unfinished(before, trace) == (Request(index=0, tokens=(1, 2, 7, 8), emitted=2),)


def test_a_finished_request_is_left_out_and_those_behind_it_stay():
    assert unfinished(PROMPTS, [Mark(1.0, "request_finished", "d0", {"request": 0})]) == (PROMPTS[1],)


def test_a_simulated_token_counts_though_nobody_knows_it():
    (left,) = unfinished(PROMPTS[:1], [emitted(0, 0, None)])
    assert (left.tokens, left.emitted) == ((1, 2, UNKNOWN_TOKEN), 1)


@pytest.fixture
def planned_for(monkeypatch):
    """The workloads that the strategy is asked to plan for."""
    workloads = []
    chosen = type(strategy("gpipe"))
    plan = chosen.plan
    monkeypatch.setattr(
        chosen,
        "plan",
        lambda self, c, m, workload, p: (workloads.append(workload), plan(self, c, m, workload, p))[1],
    )
    return workloads


def test_the_plan_is_for_the_longest_prompt_and_the_most_tokens_that_are_left(planned_for):
    spec = spec_of(prompt_tokens=2, new_tokens=10, requests=3)
    before = plan_of(spec)
    left = (Request(index=0, tokens=(1,) * 6, emitted=4), Request(index=2, tokens=(1,) * 3, emitted=1))
    after = replan(spec, before, CLUSTER, left)
    found = planned_for[-1]
    # at most 6 rows at once; 10 - 4 and 10 - 1 tokens are left; 2 of 3 requests
    assert (found.prompt_tokens, found.new_tokens, found.requests, found.prompt) == (6, 9, 2, None)
    assert after.version == before.version + 1


def test_one_token_is_left_to_generate_when_all_but_one_were(planned_for):
    spec = spec_of(prompt_tokens=2, new_tokens=1)
    replan(spec, plan_of(spec), CLUSTER, PROMPTS[:1])
    assert planned_for[-1].new_tokens == 1


@pytest.mark.parametrize(("rows", "longest"), [(3, 8), (11, 11)])
def test_an_open_workload_is_planned_for_the_longest_request_that_is_left_or_may_still_come(
    planned_for, rows, longest
):
    spec = spec_of(pattern="serve", prompt_tokens=8, new_tokens=4)
    replan(spec, plan_of(spec), CLUSTER, (Request(index=0, tokens=(1,) * rows),))
    assert (planned_for[-1].prompt_tokens, planned_for[-1].new_tokens) == (longest, 4)


def test_an_encoder_still_generates_nothing(planned_for):
    spec = spec_of(BERT, prompt_tokens=2, new_tokens=0)
    replan(spec, plan_of(spec), CLUSTER, PROMPTS[:1])
    assert planned_for[-1].new_tokens == 0


def test_without_a_worker_there_is_no_plan():
    spec = spec_of(prompt_tokens=2)
    devices = tuple(device.model_copy(update={"role": "terminal"}) for device in CLUSTER.devices)
    with pytest.raises(PlanError, match="gpipe: no device is left that computes"):
        replan(spec, plan_of(spec), CLUSTER.model_copy(update={"devices": devices}), PROMPTS)


def test_a_run_that_cannot_go_on_says_whose_failure_it_was_and_when():
    lost = PeerFailed("d1 failed.", "d1", 2.5)
    found = no_recovery(lost, EdgeLoomError("no plan."))
    assert (str(found), found.device, found.time_s) == (
        "d1 failed. The others cannot go on: no plan.",
        "d1",
        2.5,
    )
    assert isinstance(lost, RunError)
    other = no_recovery(ValueError("A bug."), EdgeLoomError("no plan."))
    assert (other.device, other.time_s) == ("", 0.0)


class StoppedRun:
    def __init__(self, plan, trace):
        self.plan, self.trace, self.cluster_now, self.now_s = plan, list(trace), CLUSTER, 4.0

    def adopt(self, plan, requests):
        self.plan, self.requests = plan, requests

    def record(self, mark):
        self.trace.append(mark)


def test_a_recovered_run_has_a_new_plan_what_is_left_and_the_reason_in_its_trace():
    spec = spec_of(prompt_tokens=2, new_tokens=4, requests=2)
    run = StoppedRun(plan_of(spec), [Mark(1.0, "request_finished", "d0", {"request": 0})])
    left = recover(spec, PROMPTS, run, PeerFailed("d1 failed.", "d1", 2.5))
    assert left == run.requests == (PROMPTS[1],)
    mark = run.trace[-1]
    assert (mark.time_s, mark.name, mark.facts["reason"]) == (4.0, "replanned", "d1 failed.")
    assert mark.facts["plan"]["version"] == run.plan.version == 1


def test_a_run_whose_requests_are_all_finished_keeps_its_plan():
    spec = spec_of(prompt_tokens=2, new_tokens=4)
    run = StoppedRun(plan_of(spec), [Mark(1.0, "request_finished", "d0", {"request": 0})])
    assert recover(spec, PROMPTS[:1], run, PeerFailed("d1 failed.", "d1", 2.5)) == ()
    assert run.plan.version == 0
    assert len(run.trace) == 1
