"""The verdict on the times of a real run: which are judged, how far they may be off, and what is said."""

import pytest

from engine.domain.report import Recovery, RequestReport
from engine.domain.scenario import (
    DropDevice,
    FreezeDevice,
    JoinDevice,
    LinkDown,
    LinkUp,
    Scenario,
    SetLoss,
    SetRate,
)
from engine.runs.fidelity import (
    RANDOM_LATENCY_LIMIT,
)
from tests.support.verdicts import LAB, report, verdict


@pytest.mark.parametrize(("latency_s", "valid"), [(1.09, True), (1.11, False), (0.91, True), (0.89, False)])
def test_a_latency_that_differs_from_its_prediction_makes_it_invalid(latency_s, valid):
    found = verdict(run=report(latency_s))
    assert found.valid is valid
    assert found.latency_error == pytest.approx(latency_s - 1)


def test_a_latency_that_is_too_long_is_named_with_its_prediction_and_a_remedy():
    (why,) = verdict(run=report(1.2)).why
    # the 0.2 s more that this host needs at D = 4 would be 10 % at D = 8
    assert why == (
        "the run took 1.2 s, +20.0% of the predicted 1 s (limit ±10%): raise the dilation from 4 to 8."
    )
    (why,) = verdict(run=report(0.8)).why
    assert why == "the run took 800 ms, -20.0% of the predicted 1 s (limit ±10%)."


TOKENS = {"ttft_s": 0.4, "tpot_s": 0.1}


@pytest.mark.parametrize(
    ("changed", "what"), [({"ttft_s": 0.48}, "the first token"), ({"tpot_s": 0.12}, "every later token")]
)
def test_every_time_that_a_report_prints_large_is_judged(changed, what):
    """A run may be as long as predicted although its first token is late."""
    predicted = report().model_copy(update=TOKENS)
    found = verdict(run=predicted.model_copy(update=changed), predicted=predicted)
    assert found.valid is False and len(found.why) == 1
    assert found.why[0].startswith(f"{what} took ") and "+20.0%" in found.why[0]
    assert "from 4 to 8" in found.why[0]
    early = {name: value * 0.8 for name, value in TOKENS.items() if name in changed}
    assert verdict(run=predicted.model_copy(update=early), predicted=predicted).valid is False
    assert verdict(run=predicted.model_copy(update=early), predicted=predicted, links=()).valid is True
    within = {name: value * 1.09 for name, value in TOKENS.items()}
    assert verdict(run=predicted.model_copy(update=within), predicted=predicted).valid is True
    far = {name: value * 3 for name, value in changed.items()}
    random = report(cluster=lossy_lab(loss_frac=0.01)).model_copy(update=TOKENS | far)
    assert verdict(run=random, predicted=predicted).valid is True


def test_an_answer_of_one_token_is_judged_once():
    late = report(1.2).model_copy(update={"ttft_s": 1.2})
    assert len(verdict(run=late, predicted=report().model_copy(update={"ttft_s": 1.0})).why) == 1


def test_links_that_are_not_shaped_may_make_a_run_shorter_but_not_longer():
    found = verdict(run=report(0.5), links=())
    assert found.valid is True
    assert found.notes == ("The links are not shaped: a latency below the prediction counts as right.",)
    assert verdict(run=report(1.5), links=()).valid is False


def lossy_lab(**impairment):
    links = (LAB.links[0].model_copy(update=impairment), *LAB.links[1:])
    return LAB.model_copy(update={"links": links})


@pytest.mark.parametrize(
    "run",
    [
        {"cluster": lossy_lab(loss_frac=0.01)},
        {"cluster": lossy_lab(reverse_loss_frac=0.01)},
        {"cluster": lossy_lab(jitter_s=0.001)},
        {"changes": (SetLoss(at_s=0.1, link="desk--hub", loss_frac=0.02),)},
    ],
)
def test_random_links_widen_the_limit_of_the_latency_and_the_verdict_says_so(run):
    found = verdict(run=report(1.4, **run))
    assert found.valid is True
    assert found.latency_limit == RANDOM_LATENCY_LIMIT
    assert found.notes == (
        "The latency may be 50% off its prediction, and the times of tokens are not judged: links lose "
        "packets or delay them at random.",
    )
    assert verdict(run=report(1.6, **run)).valid is False


def test_links_measured_during_the_run_widen_the_limit_too():
    assert verdict(run=report(1.4), live_rate_changes=1).latency_limit == RANDOM_LATENCY_LIMIT


def test_after_a_failure_the_latency_is_not_judged_and_the_verdict_says_so():
    found = verdict(run=report(3.0, changes=(DropDevice(at_s=0.1, device="shelf"),)))
    assert (found.latency_error, found.latency_limit) == (None, None)
    assert found.valid is True
    assert found.notes == (
        "The latency is not judged: how long failures take to find and mend depends on this host. Tokens "
        "before and after them are.",
    )


@pytest.mark.parametrize(
    "change",
    [
        LinkDown(at_s=0.1, link="desk--hub"),
        LinkUp(at_s=0.1, link="desk--hub"),
        FreezeDevice(at_s=0.1, device="shelf"),
        JoinDevice(at_s=0.1, device="shelf"),
    ],
    ids=lambda change: change.kind,
)
def test_no_failure_and_no_repair_lets_the_latency_be_judged(change):
    assert verdict(run=report(3.0, changes=(change,))).valid is True


def test_a_recovery_from_a_failure_that_no_change_caused_counts_as_a_failure():
    recovery = Recovery(
        device="shelf",
        how="killed",
        at_s=0.1,
        detect_s=0.0,
        replanned=True,
        replan_s=0.0,
        reload_s=0.0,
        rebuild_s=None,
    )
    crashed = report(3.0).model_copy(update={"recoveries": (recovery,)})
    assert verdict(run=crashed).latency_limit is None


def test_a_run_that_did_not_finish_has_no_latency_to_judge():
    found = verdict(run=report(3.0, kind="cancelled"))
    assert found.latency_limit is None
    assert found.notes == ("The latency is not judged: the run was stopped.",)
    assert verdict(predicted=report(kind="deadlock")).notes == (
        "The latency is not judged: the prediction ended in a deadlock.",
    )


def of_tokens(*token_s, at_s=3.5, recovery=False):
    """A run whose tokens came at these times; desk was dropped at `at_s`, and recovered within 1 s."""
    request = RequestReport(index=0, arrival_s=0.0, ttft_s=token_s[0], token_s=token_s, output_tokens=())
    found = report(token_s[-1], changes=(DropDevice(at_s=at_s, device="desk"),))
    mended = Recovery(
        device="desk",
        how="killed",
        at_s=at_s,
        detect_s=0.5,
        replanned=True,
        replan_s=0.1,
        reload_s=0.1,
        rebuild_s=0.3,
    )
    return found.model_copy(
        update={"requests": (request,), "ttft_s": token_s[0], "recoveries": (mended,) if recovery else ()}
    )


EXPECTED_TOKENS = (1.0, 1.5, 2.0, 2.5, 3.0, 5.0, 5.5, 6.0, 6.5)


@pytest.mark.parametrize(
    ("token_s", "complaint"),
    [
        (EXPECTED_TOKENS, None),
        ((1.0, 1.5, 2.0, 2.5, 3.0, 9.0, 9.5, 10.0, 10.5), None),  # how long mending takes depends on the host
        ((0.72, 1.22, 1.72, 2.22, 2.72, 5.0, 5.5, 6.0, 6.5), "the first token took 720 ms, -28.0%"),
        (
            (1.0, 1.35, 1.7, 2.05, 2.4, 5.0, 5.5, 6.0, 6.5),
            "every later token before the first change took 1.4 s",
        ),
        ((1.0, 1.5, 2.0, 2.5, 3.0, 5.0, 5.6, 6.2, 6.8), "every later token after the last change took 1.8 s"),
    ],
)
def test_after_a_failure_the_tokens_that_it_did_not_disturb_are_judged(token_s, complaint):
    recovered = token_s[5] < 6
    found = verdict(run=of_tokens(*token_s, recovery=recovered), predicted=of_tokens(*EXPECTED_TOKENS))
    assert (found.valid is True) == (complaint is None), found.why
    assert complaint is None or any(why.startswith(complaint) for why in found.why), found.why


def test_before_a_live_change_of_a_link_tokens_are_judged_and_after_it_not():
    slow = SetRate(at_s=3.5, link="desk--hub", bit_per_s=1e6)

    def changed(*token_s):
        return of_tokens(*token_s).model_copy(
            update={"scenario": Scenario(changes=(slow,)), "latency_s": 6.5}
        )

    late = verdict(
        run=changed(0.7, *EXPECTED_TOKENS[1:]), predicted=changed(*EXPECTED_TOKENS), live_rate_changes=1
    )
    assert [why.split(" took")[0] for why in late.why] == [
        "the first token",
        "every later token before the first change",
    ]
    after = changed(*EXPECTED_TOKENS[:5], 5.0, 5.7, 6.4, 7.1)
    assert verdict(run=after, predicted=changed(*EXPECTED_TOKENS), live_rate_changes=1).valid
