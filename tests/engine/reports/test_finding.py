"""A report in words, on reports whose figures were chosen so that every sentence can be written by hand."""

from typing import Any

import pytest

from engine.domain.plan import ComputedSlice, HeldSlice, Plan, Slice
from engine.domain.report import (
    Attribution,
    Correctness,
    DeviceReport,
    Fidelity,
    LinkReport,
    LoadReport,
    Outcome,
    Percentiles,
    Prediction,
    Predictions,
    Recovery,
    RequestReport,
    RunReport,
)
from engine.domain.scenario import (
    DropDevice,
    FreezeDevice,
    JoinDevice,
    LinkDown,
    LinkUp,
    Scenario,
    SetDelay,
    SetLoss,
    SetRate,
    SlowDevice,
)
from engine.domain.spec import RunSpec
from engine.domain.workload import Workload
from engine.reports.effects import effects_of, in_words
from engine.reports.finding import finding_of
from engine.strategies.shared.pipeline import PipelineLayout
from tests.support.tiny_run import MODEL, PAIR

BUSY = tuple(
    DeviceReport(name=name, busy_s=busy_s, wait_s=0, peak_memory_bytes=1, memory_bytes=1e9, flops=1)
    for name, busy_s in (("a", 0.6), ("b", 0.2))
)


def request(index: int, arrival_s: float, *token_s: float) -> RequestReport:
    return RequestReport(
        index=index, arrival_s=arrival_s, ttft_s=token_s[0], token_s=token_s, output_tokens=()
    )


def link(direction: str, busy_s: float) -> LinkReport:
    return LinkReport(
        a="a", b="b", direction=direction, bytes=1, payload_bytes=1, busy_s=busy_s, rate_bit_per_s=1e6
    )


def report(**changed: Any) -> RunReport:
    """Four tokens in 1 s: 0.4 s until the first, then 0.2 s each."""
    values: dict[str, Any] = {
        "spec": RunSpec(cluster=PAIR, model=MODEL, strategy="gpipe"),
        "plan": None,
        "world": "predicted",
        "dilation": 1.0,
        "latency_s": 1.0,
        "ttft_s": 0.4,
        "tpot_s": 0.2,
        "requests": (request(0, 0.0, 0.4, 0.6, 0.8, 1.0),),
        "devices": BUSY,
        "links": (link("forward", 0.1), link("backward", 0.5)),
        "attribution": Attribution(compute_s=0.38, link_s=0.56, wait_s=0.06),
    }
    return RunReport(**values | changed)


def words(**changed: Any) -> list[str]:
    return list(finding_of(report(**changed)).sentences)


def test_a_run_on_links_says_how_long_it_took_where_the_time_went_and_which_link_was_busiest():
    assert words() == [
        "4 tokens took 1 s: 400 ms until the first, then 200 ms each.",
        "56 % of the time went to links, 38 % to computing and 6 % to waiting.",
        "The busiest link, b → a, was sending in 50 % of the time.",
    ]


def test_links_that_hardly_send_are_limited_by_their_delays():
    said = words(links=(link("forward", 0.03), link("backward", 0.0)))
    assert said[2] == (
        "Delays cost more than rates: the busiest link, a → b, was sending in only 3 % of the time."
    )


def test_a_run_on_computing_names_the_busiest_device_and_the_other():
    said = words(attribution=Attribution(compute_s=0.9, link_s=0.1))
    assert said[1:] == [
        "90 % of the time went to computing and 10 % to links.",
        "a computed in 60 % of the time, the other device, b, in 20 %.",
    ]


def test_parts_below_a_twentieth_are_left_out():
    said = words(attribution=Attribution(compute_s=0.93, link_s=0.04, load_s=0.03))
    assert said[1] == "93 % of the time went to computing."


def test_one_device_and_one_token_need_no_comparison():
    one = {"devices": BUSY[:1], "links": (), "attribution": Attribution(compute_s=0.5)}
    assert words(**one, latency_s=0.5, tpot_s=0.0, requests=(request(0, 0.0, 0.5),)) == [
        "One token took 500 ms.",
        "All of the time went to computing.",
    ]


def test_a_device_that_computes_alone_is_called_the_only_one():
    idle = BUSY[1].model_copy(update={"busy_s": 0.0})
    said = words(devices=(BUSY[0], idle), attribution=Attribution(compute_s=1.0))
    assert said[2] == "Only a computed."


def test_an_answer_without_tokens_is_a_request():
    said = words(requests=(RequestReport(index=0, arrival_s=0, ttft_s=1, token_s=(), output_tokens=()),))
    assert said[0] == "One request took 1 s."


def test_several_requests_have_mean_times():
    both = (request(0, 0.0, 0.4, 0.6), request(1, 0.6, 0.2, 0.4))
    assert words(requests=both, ttft_s=0.3)[0] == (
        "2 requests with 4 tokens took 1 s: 300 ms until the first on average, then 200 ms each."
    )


def test_a_run_that_did_not_finish_says_why_first_and_what_it_had():
    lost = Outcome(kind="peer_lost", sentence="b failed and nobody took over")
    expected = Prediction(latency_s=2, ttft_s=1, tpot_s=1, tokens_per_s=1, peak_memory_bytes={})
    said = words(outcome=lost, predictions=Predictions(with_all_changes_known=expected))
    assert said[:2] == ["b failed and nobody took over.", "Until then 4 tokens came in 1 s."]
    assert not any("prediction" in sentence for sentence in said)
    nothing = words(outcome=lost, latency_s=0.0, requests=(), attribution=Attribution(), links=(), devices=())
    assert nothing == ["b failed and nobody took over.", "No token came before that."]


def test_an_outcome_without_a_sentence_is_named():
    assert words(outcome=Outcome(kind="out_of_memory"))[0] == "The run ran out of memory."


def load(answered: int, within: int, arrived: int = 12) -> LoadReport:
    spread = Percentiles(mean=0.3, p50=0.25, p95=0.8, p99=0.9)
    return LoadReport(
        arrived=arrived,
        answered=answered,
        answered_per_s=2.5,
        within_objectives=within,
        goodput_per_s=1.0,
        queue_s=spread.model_copy(update={"p50": 0.05}),
        first_token_s=spread,
        per_token_s=spread,
        answer_s=spread,
        longest_queue=3,
        mean_queue=0.5,
    )


def test_a_loaded_cluster_says_what_users_saw_and_counts_idle_time_apart():
    said = words(load=load(20, 16, 24), attribution=Attribution(compute_s=0.3, link_s=0.1, idle_s=0.6))
    assert said[:5] == [
        "20 of 24 requests were answered in 1 s, 2.5 a second.",
        "The median request took 250 ms, of which 50 ms in the queue; one in twenty took longer than 800 ms.",
        "80 % of the answers kept the objectives.",
        "For 60 % of the time there was no request.",
        "75 % of the rest went to computing and 25 % to links.",
    ]


def test_few_answers_have_no_slowest_twentieth_and_one_request_has_no_median():
    assert words(load=load(10, 10))[1] == "The median request took 250 ms, of which 50 ms in the queue."
    assert words(load=load(1, 1))[0] == "1 of 12 requests was answered in 1 s, 2.5 a second."
    assert words(load=load(1, 1, 1))[0] == "The request was answered in 1 s."
    assert words(load=load(0, 0, 1))[0] == "The request was not answered in 1 s."


def test_a_changed_delay_says_from_what_to_what_it_took_a_token():
    """The change at 0.65 s comes within the third token, which counts as after it."""
    tokens = request(0, 0.0, 0.4, 0.5, 0.6, 0.9, 1.2, 1.5)
    delay = SetDelay(at_s=0.65, link="a--b", delay_s=0.02)
    said = words(requests=(tokens,), scenario=Scenario(changes=(delay,)))
    assert said[3] == "The delay of 20 ms on a–b at 650 ms changed the time of a token from 100 ms to 300 ms."
    (effect,) = finding_of(report(requests=(tokens,), scenario=Scenario(changes=(delay,)))).changes
    assert (effect.before_s, effect.after_s, effect.worst_s) == pytest.approx((0.1, 0.3, 0.3))


def test_a_change_without_effect_left_a_token_as_it_was_and_one_outside_the_run_has_none():
    rate = SetRate(at_s=0.7, link="a--b", bit_per_s=2e6, direction="forward")
    late = SetLoss(at_s=5.0, link="a--b", loss_frac=0.01)
    assert words(scenario=Scenario(changes=(late, rate)))[3:] == [
        "The rate of 2 Mbit/s on a → b at 700 ms left the time of a token at 200 ms.",
        "The effect of one change is not known: no token came before or after.",
    ]


def test_a_prompt_is_no_token_before_a_change_and_changes_bound_each_other():
    """Tokens take 0.1, 0.2 and 0.4 s between two changes; the prompt's 5 s count nowhere."""
    tokens = request(0, 0.0, 5.0, 5.1, 5.3, 5.7)
    changes = (LinkDown(at_s=5.15, link="a--b"), LinkUp(at_s=5.35, link="a--b"))
    first, second = effects_of(changes, [tokens])
    assert (first.before_s, first.after_s) == pytest.approx((0.1, 0.2))
    assert (second.before_s, second.after_s) == pytest.approx((0.2, 0.4))


def test_a_device_that_a_change_makes_faster_is_not_called_slower() -> None:
    change = SlowDevice(at_s=0, device="a", factor=0.5)
    assert in_words(change) == "the speed-up of a by a factor of 2"


def test_only_the_three_largest_effects_are_told():
    """Tokens take 0.1 s, and after the changes 0.2, 0.3, 0.6 and 0.61 s: the last change did least."""
    tokens = request(0, 0.0, 0.1, 0.2, 0.4, 0.7, 1.3, 1.91)
    changes = tuple(
        SlowDevice(at_s=at_s, device="a", factor=factor)
        for at_s, factor in ((0.25, 2), (0.45, 3), (0.75, 6), (1.35, 6.1))
    )
    said = words(requests=(tokens,), scenario=Scenario(changes=changes))[3:]
    assert said == [
        "The slowdown of a by a factor of 2 at 250 ms changed the time of a token from 100 ms to 200 ms.",
        "The slowdown of a by a factor of 3 at 450 ms changed the time of a token from 200 ms to 300 ms.",
        "The slowdown of a by a factor of 6 at 750 ms changed the time of a token from 300 ms to 600 ms.",
        "One further change had smaller effects.",
    ]


def test_a_lost_device_is_told_as_a_recovery():
    recovery = Recovery(
        device="b",
        how="killed",
        at_s=0.5,
        detect_s=0.01,
        replanned=True,
        replan_s=0.1,
        reload_s=0.2,
        rebuild_s=0.3,
    )
    drop = Scenario(changes=(DropDevice(at_s=0.5, device="b"),))
    said = words(recoveries=(recovery,), scenario=drop)
    assert said[3:] == [
        "b was killed at 500 ms, which was detected 10 ms later; a new plan was made, "
        "and the next token came 610 ms after it."
    ]
    silent = recovery.model_copy(update={"rebuild_s": None, "replanned": False, "how": "frozen"})
    assert words(recoveries=(silent,))[3] == (
        "b was frozen at 500 ms, which was detected 10 ms later; the plan was kept, "
        "and no token came after it."
    )
    joined = recovery.model_copy(update={"how": "joined"})
    assert words(recoveries=(silent, joined))[3].endswith(
        "the plan was kept, and b joined before another token came."
    )


@pytest.mark.parametrize(
    ("latency_s", "said"),
    [
        (0.98, "The prediction was 980 ms; the run was within 5 % of it."),
        (0.8, "The prediction was 800 ms; the run took 25 % longer."),
        (1.25, "The prediction was 1.25 s; the run took 20 % less time."),
    ],
)
def test_a_prediction_is_said_to_be_right_or_by_how_much_it_is_off(latency_s, said):
    expected = Prediction(latency_s=latency_s, ttft_s=1, tpot_s=1, tokens_per_s=1, peak_memory_bytes={})
    assert words(predictions=Predictions(with_all_changes_known=expected))[3] == said
    late = Scenario(changes=(LinkUp(at_s=9, link="a--b"),))
    knowing = said.replace("The prediction was", "The prediction with all changes known was")
    assert words(predictions=Predictions(with_all_changes_known=expected), scenario=late)[4] == knowing


def test_what_one_should_not_believe_is_said_last():
    wrong = Correctness(checked=True, ok=False, why="token 3 differs")
    late = Fidelity(valid=False, why=("operations were late",))
    assert words(correctness=wrong, fidelity=late)[3:] == [
        "The output is not correct: token 3 differs.",
        "Its times are not valid: operations were late.",
    ]
    lossy = Correctness(checked=True, lossy=True, top1_agreement=0.97)
    assert words(correctness=lossy)[3:] == [
        "The method is lossy: the reference would choose 97 % of the tokens too."
    ]
    assert len(words(correctness=Correctness(checked=True, ok=True), fidelity=Fidelity(valid=True))) == 3


@pytest.mark.parametrize(
    ("change", "phrase"),
    [
        (SetLoss(at_s=0, link="a--b", loss_frac=0.02, direction="backward"), "the loss of 2 % on b → a"),
        (LinkDown(at_s=0, link="a--b"), "the cut of a–b"),
        (LinkUp(at_s=0, link="a--b"), "the restoring of a–b"),
        (LinkDown(at_s=0, link="a--b--2"), "the cut of a–b (2)"),
        (
            SetDelay(at_s=0, link="a--b--2", delay_s=0.01, direction="forward"),
            "the delay of 10 ms on a → b (2)",
        ),
        (FreezeDevice(at_s=0, device="a"), "the freezing of a"),
        (JoinDevice(at_s=0, device="a"), "the joining of a"),
        (DropDevice(at_s=0, device="a"), "the loss of a"),
    ],
)
def test_every_kind_of_change_has_words(change, phrase):
    assert in_words(change) == phrase


def test_a_workload_under_load_without_answers_has_no_median():
    none = load(0, 0).model_copy(update={"queue_s": None, "answer_s": None})
    workload = Workload(prompt_tokens=4, pattern="poisson", rate_per_s=1, requests=12)
    spec = RunSpec(cluster=PAIR, model=MODEL, strategy="gpipe", workload=workload)
    assert words(spec=spec, load=none)[0] == "0 of 12 requests were answered in 1 s, 2.5 a second."
    assert len(words(spec=spec, load=none)) == 3


def placed(*ranks: int) -> Plan[PipelineLayout]:
    whole = Slice(layer=0, part="attention")
    return Plan(
        strategy="gpipe",
        holdings=(HeldSlice(device=ranks[0], slice=whole),),
        work=tuple(ComputedSlice(device=rank, slice=whole) for rank in ranks),
        layout=PipelineLayout(stages=()),
    )


def test_devices_that_the_plan_leaves_out_are_named() -> None:
    def said(**changed: Any) -> list[str]:
        return [one for one in finding_of(report(**changed)).sentences if "does not use" in one]

    assert said(plan=placed(0)) == ["The plan does not use b."]
    assert said(plan=placed(0, 1)) == said() == []
    joins = Scenario(changes=(JoinDevice(at_s=0.1, device="b"),))
    assert said(plan=placed(0), scenario=joins) == [], "b is no part of the plan of the start"
