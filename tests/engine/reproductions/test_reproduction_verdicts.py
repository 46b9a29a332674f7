"""How near ours is to a published figure, and what the figures of an experiment come to."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any, get_args

import pytest

import topologies
from engine.domain.claim import Claim, Compared, Ended, Within
from engine.domain.experiment import Experiment
from engine.domain.presented import Published
from engine.experiments.design.expand import expand
from engine.experiments.design.sources import Sources
from engine.experiments.results.claims import Holds, Verdict
from engine.experiments.results.published import PublishedRow
from engine.experiments.results.rows import Row
from engine.reproductions import moved, verdicts
from engine.reproductions.coverage import Rule
from engine.reproductions.declared import (
    Input,
    InputField,
    Sentence,
    declared,
    inputs_moved_in,
    matches,
    stated_in,
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
from tests.support.small_cases import GPT2, spec_of, star


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
    moves = {} if ratio is None else {"the rate": ratio}
    assert with_input(Judged(before), set_it, moves, {"the rate": 0.8}).state == after


@pytest.mark.parametrize(
    ("ratio", "after", "why"),
    [
        (0.0, "input", "It follows from the rate: without it, it ends otherwise."),
        (1.25, "confirmed", ""),  # how far it moves says nothing of a power of 0
    ],
)
def test_an_input_that_is_left_out_is_known_by_another_outcome(ratio: float, after: State, why: str) -> None:
    assert with_input(Judged("confirmed"), None, {"the rate": ratio}, {"the rate": 0.0}) == Judged(after, why)


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
    ],
)
def test_a_bound_far_away_and_a_side_alone_confirm_no_number(
    claim: Claim, values: list[float], expected: State
) -> None:
    found = state_of_claim(HOLDS, claim, values)
    assert found.state == expected
    assert bool(found.why) == (found.cause == "paper") == (expected == "direction")


def test_a_figure_that_a_test_compares_is_confirmed_only_where_the_test_finds_it() -> None:
    figure = PublishedFigure(id="x", where="w", metric="m", unit="%", value=90)

    def state_of(kind: str, ours: float | None) -> str:
        rule = {"kind": kind, "figures": ["x"], "ours": ours, "reason": "because of something"}
        return Rule.parse(rule, "rule").state_of(figure)

    assert [state_of("checked", ours) for ours in (None, 89, 66.8, 40)] == [
        "confirmed",
        "confirmed",
        "near",
        "contradicted",
    ]
    assert (state_of("put in", None), state_of("left out", None)) == ("input", "cannot be checked")


def test_ours_moves_with_an_input_that_it_is_proportional_to() -> None:
    one = experiment("voltage-fig4")
    slower = voltage({key: 2 * seconds for key, seconds in TIMES.items()})
    before, after = moved.ours_of(one, ROWS), moved.ours_of(one, slower)
    assert moved.moves(before, after)["voltage.fig4.BERT-Large-Uncased"] == 1.0
    tenth = voltage(TIMES | {("voltage", 6): 0.9, ("megatron", 6): 1.1})
    assert moved.moves(before, moved.ours_of(one, tenth)) == pytest.approx(
        {
            "voltage.fig4.BERT-Large-Uncased": 0.4,  # 25 % less is 10 % less, and not 0.9 of 0.75
            "voltage.fig4.tp": 0.0,  # a claim that did not hold holds
        }
        | dict.fromkeys(("voltage.fig4.ViT", "voltage.fig4.GPT2", "voltage.abs.reduction"), 1.0)
    )
    ended, two, more = moved.Found("no_plan"), moved.Found("finished", 2.0), moved.Found("finished", 2.5)
    found = moved.moves({"a": two, "b": ended, "c": ended}, {"a": more, "b": two, "c": ended})
    assert found == {"a": 1.25, "b": 0.0, "c": 1.0}


def test_a_claim_that_goes_on_holding_moves_by_its_effect_and_one_that_ends_by_all() -> None:
    one = experiment("voltage-fig4")
    claim = Within(
        **RATIO, relative_to={"machines": 1, "strategy": "single"}, low=1.1, high=2, figures=("f",)
    )
    one = one.model_copy(update={"claims": (claim.model_copy(update={"at": {"strategy": "megatron"}}),)})
    slow = voltage({("single", 1): 1.0, ("megatron", 6): 1.5})
    slower = voltage({("single", 1): 1.0, ("megatron", 6): 1.75})
    outside = voltage({("single", 1): 1.0, ("megatron", 6): 2.5})
    before, after = moved.ours_of(one, slow), moved.ours_of(one, slower)
    assert moved.moves(before, after)["f"] == pytest.approx(1.5)
    assert moved.moves(before, moved.ours_of(one, outside))["f"] == 0


@pytest.mark.parametrize("name", ["lime-settings", "mcu-blocks", "voltage-fig5"])
def test_both_sides_of_every_claim_are_moved(name: str) -> None:
    """A relation without the runs of its baseline is not known, which would look as if it followed."""
    one = experiment(name)
    points = expand(one, Sources(topologies.load, topologies.preset))
    unmoved = Input(name="nothing", fields=("flop_per_s",), by=1)
    rows = shipped_rows(one)
    for claim in one.claims:
        if claim.figures:
            only = moved.about(one, set(claim.figures))
            digests = {point.digest for point in moved.moved_points(only, points, unmoved)}
            some = [row for row in rows if row.digest in digests]
            assert moved.ours_of(only, some) == moved.ours_of(only, rows), claim.name


def test_of_a_speed_up_what_moves_is_what_it_is_above_one() -> None:
    one = only_bert()
    gain = one.published[0].model_copy(update={"relation": "speedup"})
    one = one.model_copy(update={"published": (gain,)})
    slower = voltage({("single", 1): 1.0, ("voltage", 6): 0.9})
    before, after = moved.ours_of(one, ROWS), moved.ours_of(one, slower)
    expected = (1 / 0.9 - 1) / (1 / 0.75 - 1)
    assert moved.moves(before, after) == pytest.approx({gain.id: expected}, abs=1e-4)


def test_an_input_is_moved_on_all_workers_or_links_by_its_factor_and_nothing_else_is() -> None:
    spec = spec_of("gpipe", GPT2, star((1e10, 1e10), terminal=True))
    fields = ("flop_per_s", "disk_byte_per_s", "links.bit_per_s")
    for by in (0.8, 1.25):
        now = moved.moved(spec, Input(name="x", fields=fields, by=by)).cluster
        ratios = [device.flop_per_s / 1e10 for device in now.devices]
        assert ratios == pytest.approx([by, by, 1.0]), "the terminal stays"
        for device, before in zip(now.devices[:2], spec.cluster.devices, strict=False):
            assert device.disk_byte_per_s == pytest.approx(by * before.disk_byte_per_s)
            assert device.memory_byte_per_s == before.memory_byte_per_s, "it was not asked for"
        for link, before in zip(now.links, spec.cluster.links, strict=True):
            assert link.bit_per_s == pytest.approx(by * before.bit_per_s)


def test_memory_that_the_system_keeps_can_be_left_out_of_a_moved_run() -> None:
    spec = spec_of("gpipe", GPT2, star((1e10, 1e10), reserved_bytes=5e6))
    now = moved.moved(spec, Input(name="x", fields=("reserved_bytes",), by=0)).cluster
    for device, before in zip(now.devices, spec.cluster.devices, strict=True):
        assert (before.reserved_bytes, device.reserved_bytes) == (5e6, 0)
        assert device.memory_bytes == before.memory_bytes


def test_rates_of_model_families_move_with_the_rate_of_computing() -> None:
    rate = {"family": "gpt2", "flop_per_s": 4e9}
    spec = spec_of("single", GPT2, star((1e10,), family_rates=[rate]))
    now = moved.moved(spec, Input(name="x", fields=("flop_per_s",))).cluster.devices[0]
    assert [found.flop_per_s for found in now.family_rates] == pytest.approx([0.8 * 4e9])


def test_every_declared_input_was_moved_until_each_agreement_followed_from_one() -> None:
    shipped = moved.shipped_moves()
    for one in experiments():
        inputs = inputs_moved_in(one.name)
        assert {found.name for found in inputs} == set(shipped[one.name]), one.name
        left = verdicts.agreements(one, shipped_rows(one))
        for put_in in inputs:
            ratios = shipped[one.name][put_in.name]
            assert left == ratios.keys(), (one.name, put_in.name)
            left = {figure for figure in left if not follows(ratios[figure], put_in.by)}


def test_whatever_could_have_been_put_in_is_moved_or_stated_by_the_paper() -> None:
    for one in experiments():
        moved_fields = {field for put_in in inputs_moved_in(one.name) for field in put_in.fields}
        if figure_ids(one):
            assert moved_fields | stated_in(one.name) == set(get_args(InputField)), one.name


def test_what_is_declared_is_about_experiments_and_figures_that_there_are() -> None:
    ids = set(figures())
    known = {one.name for one in experiments()}
    for of_some in (*declared().input, *declared().stated):
        assert all(any(matches(name, (pattern,)) for name in known) for pattern in of_some.experiments)
    patterns = [pattern for one in declared().input for pattern in one.set_by]
    patterns += [pattern for one in (*declared().repeat, *declared().sentence) for pattern in one.figures]
    for pattern in patterns:
        assert any(matches(figure, (pattern,)) for figure in ids), pattern


def test_every_paper_has_headlines_and_each_is_a_published_figure() -> None:
    assert {one.paper for one in claimed()} == {one.paper for one in experiments()}
    assert all(one.figure in figures() for one in claimed())


def voltage(total_s: dict[tuple[str, int], float], model: str = "BERT-Large") -> list[Row]:
    return [
        Row(
            coordinates={"model": model, "strategy": strategy, "machines": machines},
            seed=0,
            world="predicted",
            digest=f"{strategy}{machines}",
            outcome="finished",
            metrics={"latency_s": seconds, "compute_s": 0.1},
            code_version="1",
        )
        for (strategy, machines), seconds in total_s.items()
    ]


TIMES = {("single", 1): 1.0, ("voltage", 6): 0.75, ("megatron", 2): 1.5, ("megatron", 6): 0.9}
ROWS = voltage(TIMES)


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


def only_bert() -> Experiment:
    one = experiment("voltage-fig4")
    first: Published = one.published[0]
    return one.model_copy(update={"published": (first,), "claims": ()})
