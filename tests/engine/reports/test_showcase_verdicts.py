"""Ratios and verdicts of claims, on reports made by hand."""

from __future__ import annotations

import pytest

from engine.domain.report import Outcome, RequestReport, RunReport
from engine.domain.showcase import Claim
from engine.reports.showcase import longest_pause_s, verdicts
from topologies.showcases import showcase

LIME = showcase("lime")


def report(latency_s: float, token_s: tuple[float, ...] = (), outcome: str = "finished") -> RunReport:
    request = RequestReport(index=0, arrival_s=0.0, ttft_s=0.0, token_s=token_s, output_tokens=())
    return RunReport(
        spec=LIME.spec,
        plan=None,
        world="predicted",
        dilation=1.0,
        latency_s=latency_s,
        requests=(request,),
        outcome=Outcome(kind=outcome),
    )


def judged(
    own: RunReport, other: RunReport, measure: str = "latency_s", at_most: float | None = None
) -> tuple:
    claim = Claim(sentence="s", measure=measure, other="lime_tpi", at_least=2.0, at_most=at_most)
    claimed = LIME.model_copy(update={"claims": (claim,)})
    ((_, ratio, holds),) = verdicts(claimed, own, {"lime_tpi": other})
    return ratio, holds


def test_the_ratio_is_the_others_measure_over_the_own() -> None:
    assert judged(report(2.0), report(5.0)) == (2.5, True)
    assert judged(report(2.0), report(3.9)) == (1.95, False)


def test_a_ratio_above_the_upper_bound_does_not_hold() -> None:
    assert judged(report(1.0), report(3.0), at_most=3.0) == (3.0, True)
    assert judged(report(1.0), report(3.1), at_most=3.0) == (3.1, False)


@pytest.mark.parametrize("failed", [0, 1])
def test_a_run_that_did_not_finish_proves_nothing(failed: int) -> None:
    kinds = ["finished", "finished"]
    kinds[failed] = "out_of_memory"
    own, other = (report(time_s, outcome=kind) for time_s, kind in zip((1.0, 9.0), kinds, strict=True))
    assert judged(own, other) == (None, False)


def test_the_longest_pause_is_between_two_tokens_of_one_request() -> None:
    slow = report(9.0, token_s=(5.0, 5.5, 7.0, 7.25))
    assert longest_pause_s(slow) == 1.5
    assert longest_pause_s(report(1.0, token_s=(1.0,))) == 0.0
    assert judged(report(1.0, token_s=(0.25, 0.5)), slow, "longest_pause_s") == (6.0, True)
