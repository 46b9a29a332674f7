"""Tokens that no change disturbed, of a run and of its prediction, each by its own times."""

import pytest

from engine.domain.report import Recovery, RequestReport, RunReport
from engine.domain.scenario import DropDevice, Scenario
from engine.runs.calm_tokens import calm_tokens
from tests.support.fake_devices import small_spec

DROP = Scenario(changes=(DropDevice(at_s=1.0, device="d1"),))


def report(token_s, mended_s):
    """One request, and a failure at 1 s that was mended at `mended_s`."""
    request = RequestReport(
        index=0, arrival_s=0.0, ttft_s=token_s[0], token_s=token_s, output_tokens=(5,) * len(token_s)
    )
    recovery = Recovery(
        device="d1",
        how="killed",
        at_s=1.0,
        detect_s=mended_s - 1.0,
        replanned=True,
        replan_s=0.0,
        reload_s=0.0,
        rebuild_s=0.0,
    )
    return RunReport(
        spec=small_spec(),
        plan=None,
        world="emulated",
        dilation=1.0,
        requests=(request,),
        recoveries=(recovery,),
        scenario=DROP,
    )


def test_what_comes_after_a_change_is_judged_from_when_each_of_both_was_mended():
    """The run was mended 2 s later than predicted; its token at 3.5 s still belongs to that."""
    run = report((0.5, 3.5, 4.5, 5.5, 6.5, 7.5), mended_s=4.0)
    predicted = report((0.4, 2.1, 2.9, 3.7, 4.5, 5.3), mended_s=2.0)
    first, after = calm_tokens(run, predicted, after=True)
    assert (first.took_s, first.expected_s) == (0.5, 0.4)
    # from 4.5 to 7.5, and from 2.9 to 5.3: the tokens 2 to 5
    assert after.what == "every later token after the last change"
    assert after.took_s == pytest.approx(3.0) and after.expected_s == pytest.approx(2.4)
