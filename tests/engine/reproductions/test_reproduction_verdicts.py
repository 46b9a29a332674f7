"""How near ours is to a published figure, and what the figures of an experiment come to."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import pytest

from engine.domain.claim import BreakEven, Claim, Compared, Ended, Within
from engine.experiments.results.claims import Holds, Verdict
from engine.experiments.results.published import PublishedRow
from engine.reproductions import verdicts
from engine.reproductions.coverage import Rule
from engine.reproductions.declared import (
    Input,
    Move,
    Sentence,
    declared,
    matches,
    other_regime_of,
)
from engine.reproductions.figures import PublishedFigure, figures
from engine.reproductions.headlines import claimed
from engine.reproductions.shipped import experiment, experiments, figure_ids, shipped_rows, write_rows
from engine.reproductions.states import (
    Judged,
    State,
    follows,
    state_of_claim,
    state_of_value,
    with_input,
)
from engine.reproductions.summary import counted
from engine.reproductions.verdicts import FigureVerdict, Reason, figure_verdicts, reason_of, remarks
from tests.support.voltage_rows import ROWS, only_bert, voltage


def row(ours: float | None, deviation: float | None, published: float = 2.0, **more: object) -> PublishedRow:
    return PublishedRow.model_validate(
        {
            "id": "x",
            "where": "Table 1",
            "metric": "latency_s",
            "unit": "",
            "coordinates": {},
            "world": "predicted",
            "bound": "equal",
            "published": published,
            "ours": ours,
            "deviation": deviation,
            **more,
        }
    )


def state(ours: float, published: float, relation: str, sentence: Sentence | None = None) -> State:
    return state_of_value(row(ours, ours / published - 1, published), relation, sentence).state


@pytest.mark.parametrize(
    ("published", "ours", "relation", "expected"),
    [
        (2.0, 2.09, "speedup", "confirmed"),
        (2.0, 2.11, "speedup", "near"),
        (1.08, 1.12, "speedup", "direction"),  # 4 % from it, and half as much again of an effect
        (2.0, 1.81, "value", "confirmed"),
        (2.0, 2.59, "value", "near"),
        (2.0, 1.71, "speedup", "near"),
        (2.0, 1.69, "speedup", "direction"),
        (2.0, 1.39, "value", "contradicted"),
        (2.0, 0.99, "speedup", "contradicted"),
        (1.2, 1.015, "ratio", "contradicted"),  # nearer than 30 %, but no effect
        (1.2, 1.03, "ratio", "direction"),
        (1.05, 0.98, "ratio", "contradicted"),  # nearer than 10 %, on the other side
        (0.96, 1.0, "ratio", "cannot be checked"),  # both runs are the same
        (1.1, 1.0, "ratio", "cannot be checked"),
        (2.94, 1.0, "ratio", "contradicted"),
        (0.3, 0.2, "reduction", "direction"),
        (0.3, -0.2, "reduction", "contradicted"),
    ],
)
def test_a_state_is_by_ours_over_published_and_by_the_side_of_the_baseline(
    published: float, ours: float, relation: str, expected: str
) -> None:
    assert state(ours, published, relation) == expected


@pytest.mark.parametrize(
    ("ours", "expected"),
    [(1.3, "confirmed"), (1.62, "near"), (1.9, "direction"), (0.9, "contradicted"), (1.01, "contradicted")],
)
def test_of_a_range_the_nearer_end_counts(ours: float, expected: State) -> None:
    distance = max(ours - 1.5, 1.2 - ours, 0)
    ranged = row(ours, distance, published=None, published_low=1.2, published_high=1.5)  # type: ignore[arg-type]
    assert state_of_value(ranged, "ratio").state == expected


def test_super_linear_on_four_chips_is_more_than_four_times_however_near() -> None:
    sentence = Sentence(figures=("x",), text="super-linear on 4 chips", above=4)
    assert [state(ours, 4.7, "speedup", sentence) for ours in (4.6, 4.2, 4.0, 3.79)] == [
        "confirmed",
        "near",
        "contradicted",
        "contradicted",
    ]
    (declared_one,) = [one for one in declared().sentence if matches("mcu_tp.mb4.speedup", one.figures)]
    assert declared_one.above == 4


def test_a_figure_without_a_run_cannot_be_checked_and_one_whose_run_has_no_plan_is_contradicted() -> None:
    assert state_of_value(row(None, None), "ratio").state == "cannot be checked"
    assert state_of_value(row(None, None, outcomes=("no_plan",)), "ratio").state == "contradicted"
    ended = {"published": None, "published_outcome": "no_plan", "outcomes": ("no_plan",)}
    assert state_of_value(row(None, None, agrees=True, **ended), "value").state == "confirmed"


@pytest.mark.parametrize(("ours", "expected"), [(8.7, "confirmed"), (25.8, "direction"), (6.0, "near")])
def test_a_bound_met_three_times_over_is_a_side_and_no_number(ours: float, expected: State) -> None:
    met = row(ours, min(ours / 8 - 1, 0), published=8, bound="at_least")
    assert state_of_value(met, "value").state == expected


RATE = Input(name="the rate", set_by=("x",))


@pytest.mark.parametrize(
    ("before", "set_it", "ratio", "after"),
    [
        ("confirmed", RATE, None, "input"),
        ("contradicted", RATE, None, "contradicted"),  # what was put in cannot confirm, and can contradict
        ("confirmed", None, 1.25, "input"),  # as much more as there is less of the input
        ("near", None, 0.8, "input"),
        ("confirmed", None, 0.8**0.85, "input"),
        ("confirmed", None, 0.8**-0.85, "input"),
        ("confirmed", None, 0.8**0.75, "confirmed"),  # it depends on more than the input
        ("confirmed", None, 0.9, "confirmed"),
        ("confirmed", None, 1.0, "confirmed"),
        ("confirmed", None, 0.0, "input"),  # without the input it ends otherwise
        ("confirmed", None, -0.1, "input"),  # what was faster than its baseline is slower
        ("direction", None, 1.25, "input"),
        ("contradicted", None, 1.25, "contradicted"),
    ],
)
def test_what_was_put_in_or_moves_with_it_is_no_agreement(
    before: State, set_it: Input | None, ratio: float | None, after: State
) -> None:
    moved_by = [] if ratio is None else [(Move((RATE,)), ratio)]
    assert with_input(Judged(before), set_it, moved_by).state == after


@pytest.mark.parametrize(
    ("ratio", "after", "why"),
    [
        (0.0, "input", "It follows from the rate: without it, it ends otherwise."),
        (1.25, "confirmed", ""),  # how far it moves says nothing of a power of 0
    ],
)
def test_an_input_that_is_left_out_is_known_by_another_outcome(ratio: float, after: State, why: str) -> None:
    without = Move((RATE.model_copy(update={"by": 0.0}),))
    assert with_input(Judged("confirmed"), None, [(without, ratio)]) == Judged(after, why)


def test_of_two_inputs_at_once_the_larger_factor_counts_and_both_are_named() -> None:
    reserve, unit = Input(name="the reserve", by=0), Input(name="the unit of memory", by=1.07)
    assert (Move((RATE, unit)).by, Move((RATE, reserve)).by) == (0.8, 0)
    ended = with_input(Judged("confirmed"), None, [(Move((reserve, unit)), 0.0)])
    assert ended.why == (
        "It follows from the reserve, and the unit of memory: without the reserve and with 1.07 times of the "
        "unit of memory, it ends otherwise."
    )
    twice = Input(name="the length", by=2)
    assert not follows(1.5, Move((RATE, twice))), "it follows where it moves by what the length does"
    assert follows(1.8, Move((RATE, twice)))


@pytest.mark.parametrize(
    ("verdict", "expected"),
    [
        ("holds", "confirmed"),
        ("holds in direction", "direction"),
        ("does not hold", "contradicted"),
        ("not known", "cannot be checked"),
    ],
)
def test_a_sentence_is_confirmed_only_where_it_holds_as_it_stands(verdict: Holds, expected: State) -> None:
    found = Verdict(name="c", text="t", kind="within", world="predicted", verdict=verdict, found="so.")
    claim = Within(name="c", text="t", low=2, high=3)
    assert state_of_claim(found, claim, [2.5]) == Judged(expected, "so." if verdict == "not known" else "")


HOLDS = Verdict(name="c", text="t", kind="within", world="predicted", verdict="holds", found="so.")
CROSSING: dict[str, Any] = {
    "name": "c",
    "text": "t",
    "along": "rate",
    "a": {"method": "a"},
    "b": {"method": "b"},
    "low": 1e9,
    "high": 1.4e9,
}
RATIO: dict[str, Any] = {"name": "c", "text": "t", "relation": "ratio"}


@pytest.mark.parametrize(
    ("claim", "values", "expected"),
    [
        (Within(name="c", text="t", low=0, high=0.1), [0.095], "confirmed"),
        (Within(name="c", text="t", low=0, high=0.1), [0.002], "direction"),
        (Within(name="c", text="t", low=40, unit="s", metric="tpot_s"), [42.0, 90.0], "confirmed"),
        (Within(name="c", text="t", low=40, unit="s", metric="tpot_s"), [53.0], "direction"),
        (Within(**RATIO, low=1), [1.5], "direction"),  # slower than its baseline: a side
        (Within(**RATIO, low=2), [2.05], "confirmed"),
        (Within(**RATIO, low=2), [2.5], "direction"),
        (Compared(name="c", text="t", a={"x": 1}, b={"x": 2}, side="below"), [], "direction"),
        (Compared(name="c", text="t", a={"x": 1}, b={"x": 2}, side="below", by_frac=0.3), [], "confirmed"),
        (Ended(name="c", text="t", outcome="no_plan"), [], "confirmed"),
        (BreakEven(**CROSSING), [1.25e9], "confirmed"),
    ],
)
def test_a_bound_far_away_and_a_side_alone_confirm_no_number(
    claim: Claim, values: list[float], expected: State
) -> None:
    found = state_of_claim(HOLDS, claim, values)
    assert found.state == expected
    assert bool(found.why) == (found.cause == "paper") == (expected == "direction")


@pytest.mark.parametrize(
    ("places", "expected"), [([1.3e9], "confirmed"), ([1.5e9], "near"), ([1.2e9, 1.81e9], "contradicted")]
)
def test_a_break_even_elsewhere_is_judged_by_how_far_it_is(places: list[float], expected: State) -> None:
    """Between the published rate and ours the other method is faster: that is no direction."""
    crossed = HOLDS.model_copy(update={"verdict": "holds in direction", "kind": "break_even"})
    assert state_of_claim(crossed, BreakEven(**CROSSING), places).state == expected


def test_a_sentence_of_no_effect_is_a_side_where_ours_has_none_and_refuted_where_it_has() -> None:
    sentence = Sentence(figures=("x",), text="negligible degradation")
    states = [state(ours, 0.971, "ratio", sentence) for ours in (1.0, 0.985, 0.95)]
    assert states == ["direction", "direction", "contradicted"]


def test_a_figure_that_a_test_compares_is_confirmed_only_where_the_test_finds_it() -> None:
    figure = PublishedFigure(id="x", where="w", metric="m", unit="%", value=90)

    def state_of(kind: str, ours: float | None) -> State | None:
        rule = {"kind": kind, "figures": ["x"], "ours": ours, "reason": "because of something"}
        return Rule.parse(rule, "rule").state_of(figure)

    assert [state_of("checked", ours) for ours in (None, 89, 66.8, 40)] == [
        "confirmed",
        "confirmed",
        "near",
        "contradicted",
    ]
    assert (state_of("put in", None), state_of("left out", None)) == ("input", "cannot be checked")
    assert state_of("repeats", None) is None, "the figures that it repeats have the state"


def test_figures_in_another_regime_than_the_papers_cannot_be_checked() -> None:
    found = figure_verdicts(experiment("lime-varying"), shipped_rows(experiment("lime-varying")))
    assert {one.state for one in found} == {"cannot be checked"}
    assert all("not in the paper's regime" in one.why for one in found)
    assert other_regime_of("lime.vb.pp.bursty.both") is None
    for reason in remarks().reason:
        assert "not in the paper's regime" not in reason.reason, "then nothing is contradicted"


def test_a_published_value_stands_with_all_its_digits_and_what_it_is_computed_from() -> None:
    found = {
        one.id: one.published
        for name in ("adaptlink-table1", "lime-table5")
        for one in figure_verdicts(experiment(name), shipped_rows(experiment(name)))
    }
    assert found["adaptlink.tab1.edge-only.llava-7b.throughput"] == "14.95 tokens/s"
    assert found["lime.tab5.lime.bursty.latency"].startswith("1.693 s (423.2 ms")


def test_what_is_declared_is_about_experiments_and_figures_that_there_are() -> None:
    ids = set(figures())
    known = {one.name for one in experiments()}
    for of_some in (*declared().input, *declared().stated):
        assert all(any(matches(name, (pattern,)) for name in known) for pattern in of_some.experiments)
    patterns = [pattern for one in declared().input for pattern in one.set_by]
    of_figures = (*declared().repeat, *declared().sentence, *declared().other_regime)
    patterns += [pattern for one in of_figures for pattern in one.figures]
    for pattern in patterns:
        assert any(matches(figure, (pattern,)) for figure in ids), pattern


def test_every_paper_has_headlines_and_each_is_a_published_figure() -> None:
    assert {one.paper for one in claimed()} == {one.paper for one in experiments()}
    assert all(one.figure in figures() for one in claimed())


def test_values_and_claims_get_a_verdict_each() -> None:
    found = {one.id: one for one in figure_verdicts(experiment("voltage-fig4"), ROWS)}
    value, claim = found["voltage.fig4.BERT-Large-Uncased"], found["voltage.fig4.tp"]
    assert (value.published, value.ours, value.state) == ("27.9 %", "25 %", "input")
    assert value.what == "BERT-Large, voltage, 6 machines" and value.why.startswith("Put in: the machines")
    assert claim.state == "contradicted", "tensor parallelism is faster than one machine in one of two places"
    assert found["voltage.fig4.ViT"].state == "cannot be checked"
    assert found["voltage.abs.reduction"].repeats
    assert counted(found.values()) == {"contradicted": 1, "input": 1, "cannot be checked": 2}


def test_figures_that_repeat_another_one_and_other_worlds_are_not_counted() -> None:
    def one(world: str, repeats: str) -> FigureVerdict:
        fields = {"id": "x", "experiment": "e", "where": "", "what": "", "published": "", "ours": ""}
        return FigureVerdict.parse(fields | {"world": world, "repeats": repeats, "state": "confirmed"}, "x")

    found = [one(world, repeats) for world, repeats in product(("predicted", "emulated"), ("", "another"))]
    assert counted(found) == {"confirmed": 1}


def test_shipped_rows_come_back_with_the_metrics_that_are_shown(tmp_path: Path) -> None:
    one = experiment("voltage-fig4")
    write_rows(one, ROWS, tmp_path)
    back = shipped_rows(one, tmp_path)
    assert [(found.digest, found.metrics) for found in back] == [
        (given.digest, {"latency_s": given.metrics["latency_s"]}) for given in ROWS
    ]
    assert shipped_rows(experiment("voltage-fig5"), tmp_path) == ()


def test_every_reason_stands_for_some_figure() -> None:
    placed = [figure for one in experiments() for figure in figure_ids(one)]
    for pattern in (pattern for reason in remarks().reason for pattern in reason.figures):
        assert any(matches(one, (pattern,)) for one in placed), pattern


def test_a_reason_and_its_cause_are_shown_only_where_a_figure_is_off(monkeypatch: pytest.MonkeyPatch) -> None:
    why = Reason(figures=("voltage.*",), cause="paper", reason="Because.", looked="Looked.")
    monkeypatch.setattr(verdicts, "reason_of", lambda figure_id: why)
    near = figure_verdicts(only_bert(), ROWS)[0]
    far = figure_verdicts(only_bert(), voltage({("single", 1): 1.0, ("voltage", 6): 0.99}))[0]
    assert "Because" not in near.why and near.cause == ""
    assert (far.why, far.cause) == ("Because. Looked.", "paper")
    assert reason_of("mcu_tp.nothing") is None
