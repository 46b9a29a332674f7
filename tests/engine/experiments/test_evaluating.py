"""Means, intervals, best, break-even, claims, published values and tables against numbers worked by hand."""

from __future__ import annotations

import math
from typing import Any

import pytest

from engine.domain.errors import SpecError
from engine.domain.presented import Figure, Table
from engine.domain.quantity import Quantity
from engine.experiments.presentation.figure_data import figure_data
from engine.experiments.results.best import best
from engine.experiments.results.break_even import crossings
from engine.experiments.results.cells import cells
from engine.experiments.results.claims import verdicts
from engine.experiments.results.pivot import table_data
from engine.experiments.results.published import compare_published
from engine.experiments.results.statements import check_statements
from engine.experiments.results.units import in_unit
from tests.support.experiment_rows import METHODS, RATES, experiment_of, rows_of

TOTAL = Quantity(metric="latency_s")
FALLING = {
    ("single", 1e6): 2.0,
    ("single", 1e7): 2.0,
    ("single", 1e8): 2.0,
    ("voltage", 1e6): 8.0,
    ("voltage", 1e7): 4.0,
    ("voltage", 1e8): 1.0,
}
"""Voltage crosses single's 2 s between 1e7 and 1e8: log(4/2) = log 2 above, log(1/2) = -log 2 below: half way
on the logarithm, at 10^7.5.
"""


# Statistics over seeds ----------------------------------------------------------------------------
def test_a_cell_has_the_mean_over_seeds_and_what_did_not_finish_is_left_out() -> None:
    rows = rows_of("latency_s", {("single", 1e6): [1.0, "failed", 3.0], ("single", 1e7): "no_plan"})
    good, bad = cells(experiment_of(), rows, TOTAL)
    assert (good.mean, good.outcomes) == (2.0, ("finished", "failed", "finished"))
    assert good.low == pytest.approx(2 - 12.706) and good.high == pytest.approx(2 + 12.706)
    assert (bad.mean, bad.problem) == (None, "It ended as no_plan.")


def test_only_the_cells_of_the_asked_worlds_are_counted() -> None:
    values = {("single", 1e6, "predicted"): 1.0, ("single", 1e6, "emulated"): 2.0}
    rows, experiment = rows_of("latency_s", values), experiment_of(worlds=["predicted", "emulated"])
    assert [cell.mean for cell in cells(experiment, rows, TOTAL, worlds=["emulated"])] == [2.0]
    assert [cell.mean for cell in cells(experiment, rows, TOTAL)] == [1.0, 2.0]


def test_a_relation_is_taken_seed_by_seed() -> None:
    rows = rows_of("latency_s", {("single", 1e6): [2.0, 4.0], ("voltage", 1e6): [1.0, 1.0, 1.0]})
    relation = {"relative_to": {"method": "single"}}
    values = {
        how: [
            repeat.value
            for repeat in cells(experiment_of(), rows, Quantity(relation=how, **relation))[1].repeats
        ]  # type: ignore[arg-type]
        for how in ("ratio", "speedup", "reduction")
    }
    # the third seed has no baseline of its own: the mean of single is 3
    assert values["ratio"] == [1 / 2, 1 / 4, 1 / 3]
    assert values["speedup"] == [2, 4, 3]
    assert values["reduction"] == pytest.approx([1 / 2, 3 / 4, 2 / 3])


def test_a_relation_without_a_baseline_says_so() -> None:
    rows = rows_of("latency_s", {("single", 1e6): "no_plan", ("voltage", 1e6): 1.0})
    quantity = Quantity(relation="speedup", relative_to={"method": "single"})
    assert (
        cells(experiment_of(), rows, quantity)[1].problem
        == "The baseline (method = single) has no value here."
    )


# Best and break-even ------------------------------------------------------------------------------
def test_what_overlaps_with_the_best_cannot_be_told_apart() -> None:
    rows = rows_of(
        "latency_s",
        {
            ("single", 1e6): [1.0, 1.1, 0.9],
            ("voltage", 1e6): [1.1, 1.2, 1.0],
            ("single", 1e7): [1.00, 1.01, 0.99],
            ("voltage", 1e7): [3.00, 3.01, 2.99],
        },
    )
    slow, fast = best(experiment_of(), rows, TOTAL, of="method")
    assert (slow.winners, slow.distinguishable, slow.next) == (("single", "Voltage"), False, "")
    assert (fast.winners, fast.distinguishable, fast.next, fast.next_mean) == (
        ("single",),
        True,
        "Voltage",
        3.0,
    )
    assert fast.coordinates == {"rate": 1e7, "world": "predicted"}


def test_more_is_better_for_tokens_per_second_and_less_for_their_ratio_of_time() -> None:
    rows = rows_of("tokens_per_s", {("single", 1e6): 5.0, ("voltage", 1e6): 9.0})
    (found,) = best(experiment_of(), rows, Quantity(metric="tokens_per_s"), of="method")
    assert found.winners == ("Voltage",)


def test_a_crossing_is_the_same_in_whichever_order_its_points_were_carried_out() -> None:
    rows = rows_of("latency_s", FALLING)
    found = crossings(experiment_of(), rows, TOTAL, "rate", "method")
    shuffled = [rows[index] for index in (2, 0, 1, 4, 5, 3)]
    assert crossings(experiment_of(), shuffled, TOTAL, "rate", "method") == found


def test_the_break_even_point_is_interpolated_on_logarithms() -> None:
    (crossing,) = crossings(experiment_of(), rows_of("latency_s", FALLING), TOTAL, "rate", "method")
    assert crossing.x == pytest.approx(10**7.5)
    assert (crossing.below, crossing.above) == ("single", "Voltage")
    assert crossing.text == (
        "Voltage is better than single where rate of the links is above 31.6 Mbit/s "
        "(between 10 Mbit/s and 100 Mbit/s)."
    )


def test_lines_that_touch_or_run_beside_each_other_do_not_cross() -> None:
    beside = {**FALLING, ("voltage", 1e8): 2.0}
    assert crossings(experiment_of(), rows_of("latency_s", beside), TOTAL, "rate", "method") == ()


def test_a_break_even_point_has_the_interval_in_which_both_overlap() -> None:
    """Single is 2 s ± 0.2 s; Voltage falls from 8 s over 4 s to 1 s, ± 10 %. Half intervals of two seeds are
    12.706 times half of their distance. The upper end of one meets the lower end of the other where
    log(2.2 / (0.9 v)) = 0: between 10 and 100 Mbit/s, v = 4^(1-u), so u = 1 - log4(2.2/0.9) = 0.355 and, with
    the other ends, 1.8 = 1.1 v: u = 1 - log4(1.8/1.1) = 0.645.
    """

    def two(mean: float, half: float) -> list[float]:
        return [mean - half / 12.706, mean + half / 12.706]

    values = {
        **{("single", rate): two(2, 0.2) for rate in (1e6, 1e7, 1e8)},
        **{("voltage", rate): two(v, v / 10) for rate, v in ((1e6, 8), (1e7, 4), (1e8, 1))},
    }
    (found,) = crossings(experiment_of(), rows_of("latency_s", values), TOTAL, "rate", "method")
    assert found.distinguishable and found.x == pytest.approx(10**7.5)
    assert found.low == pytest.approx(10 ** (7 + 1 - math.log(2.2 / 0.9, 4)), rel=1e-3)
    assert found.high == pytest.approx(10 ** (7 + 1 - math.log(1.8 / 1.1, 4)), rel=1e-3)
    assert ", 95 % interval 22.7 Mbit/s to 44.1 Mbit/s (between" in found.text


def test_lines_whose_intervals_overlap_to_the_end_are_not_distinguishable() -> None:
    values = {
        **{("single", rate): [1.9, 2.1] for rate in (1e6, 1e7, 1e8)},
        **{("voltage", rate): [v - 0.1, v + 0.1] for rate, v in ((1e6, 8), (1e7, 4), (1e8, 1.9))},
    }
    (found,) = crossings(experiment_of(), rows_of("latency_s", values), TOTAL, "rate", "method")
    assert (found.distinguishable, found.high) == (False, None)
    assert found.text.startswith(
        "Voltage and single are not distinguishable where rate of the links is above"
    )


def test_runs_that_are_not_valid_are_left_out_unless_asked_for() -> None:
    """At 100 Mbit/s the only emulation of Voltage, 1 s, is not valid: no crossing, and single is the best."""
    rows = [
        row.model_copy(update={"metrics": {**row.metrics, "valid": float(row.metrics["latency_s"] != 1.0)}})
        for row in rows_of("latency_s", {**FALLING, ("voltage", 1e7): [4.0, 1.0]})
    ]
    experiment = experiment_of()
    assert crossings(experiment, rows, TOTAL, "rate", "method") == ()
    assert [one.winners for one in best(experiment, rows, TOTAL, of="method")] == 3 * [("single",)]
    by_place = {
        (cell.coordinates["method"], cell.coordinates["rate"]): cell
        for cell in cells(experiment, rows, TOTAL)
    }
    half, none = by_place["voltage", 1e7], by_place["voltage", 1e8]
    assert (half.mean, half.invalid, [one.value for one in half.left_out]) == (4.0, 1, [1.0])
    assert (none.mean, none.problem) == (None, "Its run does not count as valid.")
    claim = {"kind": "compared", "name": "c", "text": "t", **SIDES, "at": {"rate": 1e8}}
    for asked, verdict in ((False, "not known"), (True, "holds")):
        stated = experiment_of(claims=[{**claim, "count_invalid": asked}])
        assert verdicts(stated, rows)[0].verdict == verdict
    data = figure_data(experiment, Figure(name="f", x="rate", series="method"), rows)
    line = next(line for line in data.panels[0].lines if line.label == "Voltage")
    assert [(spot.y, [one.value for one in spot.left_out]) for spot in line.spots] == [
        (8.0, []),
        (4.0, [1.0]),
        (None, [1.0]),
    ]
    asked = Quantity(metric="latency_s", count_invalid=True)
    assert len(crossings(experiment, rows, asked, "rate", "method")) == 1


# Claims -------------------------------------------------------------------------------------------
SIDES = {"a": {"method": "Voltage"}, "b": {"method": "single"}, "side": "below"}

FAST = {"method": "voltage", "rate": 1e8}
BETTER = {"kind": "break_even", "along": "rate", "a": {"method": "voltage"}, "b": {"method": "single"}}

CLAIMS: list[tuple[dict[str, Any], str, str]] = [
    (
        {"kind": "compared", **SIDES, "at": {"rate": 1e8}, "by_frac": 0.52},
        "holds",
        "Voltage against single: -50.0%.",
    ),
    ({"kind": "compared", **SIDES, "at": {"rate": 1e8}, "by_frac": 0.6}, "holds in direction", "-50.0%"),
    ({"kind": "compared", **SIDES}, "does not hold", "-50.0% to +300.0% (3 places)"),
    ({"kind": "compared", **SIDES, "at": {"rate": 5.0}}, "not known", "No place"),
    (
        {"kind": "first", "of": "method", "level": "Voltage", "at": {"rate": [1e8]}},
        "holds",
        "first in 1 of 1",
    ),
    (
        {"kind": "first", "of": "method", "level": "single"},
        "does not hold",
        "first in 2 of 3; elsewhere Voltage",
    ),
    (
        {"kind": "first", "of": "method", "level": "Voltage"},
        "does not hold",
        "first in 1 of 3; elsewhere single",
    ),
    (
        {"kind": "first", "of": "method", "level": "Voltage", "last": True, "at": {"rate": 1e6}},
        "holds",
        "last in 1",
    ),
    ({"kind": "trend", "along": "rate", "goes": "falls", "at": {"method": "voltage"}}, "holds", "8 s to 1 s"),
    ({"kind": "trend", "along": "rate", "goes": "rises"}, "does not hold", "rises in every step of 0 of 2"),
    ({"kind": "within", "low": 900, "high": 1100, "unit": "ms", "at": FAST}, "holds", "1 s"),
    (
        {"kind": "within", "low": 1.2, "high": 2, "at": FAST},
        "does not hold",
        "1 s, claimed 1.2 s to 2 s",
    ),
    ({"kind": "within", "low": 3, "high": 4, "at": FAST}, "does not hold", "1 s"),
    ({"kind": "within", "low": 0.5, "at": FAST}, "holds", "1 s, claimed at least 500 ms"),
    ({"kind": "within", "low": 1.2, "at": FAST}, "does not hold", "1 s, claimed at least 1.2 s"),
    ({"kind": "within", "high": 0.5, "at": FAST}, "does not hold", "1 s, claimed at most 500 ms"),
    ({"kind": "ended", "outcome": "finished"}, "holds", "6 of 6 finished"),
    ({"kind": "ended", "outcome": ["no_plan", "out_of_memory"]}, "does not hold", "6 of 6 finished"),
    ({**BETTER, "low": 3e7, "high": 4e7}, "holds", "at 31.6 Mbit/s"),
    ({**BETTER, "low": 8e7, "high": 1e8}, "holds in direction", "at 31.6 Mbit/s"),
    ({**BETTER, "low": 1e8, "high": 1e8, "tested": True}, "holds", "at 100 Mbit/s"),
    (
        {
            "kind": "break_even",
            "along": "rate",
            "a": {"method": "single"},
            "b": {"method": "voltage"},
            "low": 1e6,
            "high": 1e9,
        },
        "does not hold",
        "at nowhere",
    ),
]


LIKE_LIME = {"kind": "within", "relation": "ratio", "relative_to": {"method": "voltage"}, "unit": "x"}
SLOWER = {**LIKE_LIME, "low": 1.4, "high": 6.5, "at": {"method": ["single", "megatron"]}}
BEST = {**LIKE_LIME, "low": 1.53, "high": 1.87, "best_of": "method", "at": {"method": ["single", "megatron"]}}


@pytest.mark.parametrize(
    ("fields", "others", "verdict", "found"),
    [
        (SLOWER, (1.5, 6.0), "holds", "1.5 to 6, claimed 1.4 to 6.5"),
        (SLOWER, (1.03, 51.4), "holds in direction", "1.03 to 51.4"),
        (SLOWER, (0.717, 5.0), "does not hold", "0.717 to 5"),  # the mean, 2.9, is inside
        (SLOWER, (1.0, 30.0), "does not hold", "1 to 30"),
        (SLOWER, (1.01, 4.0), "does not hold", "1.01 to 4"),  # no effect
        (SLOWER, ("out_of_memory", 4.0), "not known", "4, claimed 1.4 to 6.5; 1 without a value"),
        (SLOWER, ("out_of_memory", 0.9), "does not hold", "0.9, claimed"),
        (BEST, (1.7, 3.7), "holds", "1.7, claimed 1.53 to 1.87"),
        (BEST, (1.0, 1.7), "does not hold", "1, claimed 1.53"),
        (BEST, (1.2, 1.7), "holds in direction", "1.2, claimed 1.53"),
        (BEST, ("out_of_memory", 1.7), "holds", "1.7, claimed 1.53"),
    ],
)
def test_a_range_is_about_every_baseline_and_the_best_baseline_is_the_fastest_that_ran(
    fields: dict[str, Any], others: tuple[float | str, float | str], verdict: str, found: str
) -> None:
    values = dict(zip((("single", 1e6), ("megatron", 1e6)), others, strict=True))
    methods = {**METHODS, "values": [*METHODS["values"], {"value": "megatron"}]}
    experiment = experiment_of(methods, RATES, claims=[{"name": "c", "text": "t", **fields}])
    (judged,) = verdicts(experiment, rows_of("latency_s", {("voltage", 1e6): 1.0, **values}))
    assert (judged.verdict, found in judged.found) == (verdict, True), judged.found


@pytest.mark.parametrize(("fields", "verdict", "found"), CLAIMS)
def test_a_claim_holds_holds_in_direction_or_does_not(
    fields: dict[str, Any], verdict: str, found: str
) -> None:
    claim = {"name": "c", "text": "t", "reason": "because", **fields}
    (judged,) = verdicts(experiment_of(claims=[claim]), rows_of("latency_s", FALLING))
    assert (judged.verdict, judged.reason) == (verdict, "" if verdict == "holds" else "because")
    assert found in judged.found and judged.found.endswith(".")


def test_every_world_with_results_has_its_own_verdict_and_without_any_it_is_not_known() -> None:
    claim = {"kind": "compared", "name": "c", "text": "t", **SIDES}
    experiment = experiment_of(claims=[claim], worlds=["predicted", "emulated"])
    values = {("single", 1e6): 2.0, ("voltage", 1e6): 1.0}
    values |= {("single", 1e6, "emulated"): 1.0, ("voltage", 1e6, "emulated"): 2.0}  # type: ignore[dict-item]
    found = verdicts(experiment, rows_of("latency_s", values))
    assert [(one.world, one.verdict) for one in found] == [
        ("predicted", "holds"),
        ("emulated", "does not hold"),
    ]
    assert [one.verdict for one in verdicts(experiment, [])] == ["not known"]


# Published values ---------------------------------------------------------------------------------
def test_published_values_are_compared_in_the_metric_s_unit() -> None:
    published = [
        {"id": "value", "coordinates": {"method": "voltage", "rate": 1e8}, "value": 800, "unit": "ms"},
        {"id": "range", "coordinates": {"method": "voltage"}, "low": 2, "high": 10},
        {"id": "bound", "coordinates": {"method": "single"}, "value": 3, "bound": "at_most"},
        {"id": "outcome", "coordinates": {"method": "single"}, "outcome": "out_of_memory"},
        {"id": "speed", "coordinates": {"method": "voltage", "rate": 1e8}, "value": 100, "unit": "%",
         "relation": "ratio", "relative_to": {"method": "single"}},
        {"id": "nowhere", "coordinates": {"rate": 5e5}, "value": 1.0},
    ]  # fmt: skip
    experiment = experiment_of(METHODS, {**RATES, "values": [5e5, 1e6, 1e7, 1e8]}, published=published)
    found = {row.id: row for row in compare_published(experiment, rows_of("latency_s", FALLING))}
    assert (found["value"].published, found["value"].ours) == (0.8, 1.0)
    assert found["value"].deviation == pytest.approx(0.25)
    assert (found["range"].ours_low, found["range"].ours_high, found["range"].deviation) == (1.0, 8.0, -0.5)
    assert found["bound"].deviation == 0.0
    assert (found["outcome"].agrees, set(found["outcome"].outcomes)) == (False, {"finished"})
    assert (found["speed"].published, found["speed"].ours) == (1.0, 0.5)
    assert (found["nowhere"].ours, found["nowhere"].problem) == (None, "There is no such point.")


def test_a_unit_of_another_kind_is_refused() -> None:
    assert in_unit(3, "GiB", "B") == 3 * 2**30
    with pytest.raises(SpecError, match="the unit MB does not fit a value in s: use one of s, ms"):
        in_unit(1, "MB", "s")


AT_SPEED = {"name": "c", "text": "It is.", "at": {"speed": 1}}


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"published": [{"value": 1, "unit": "kg"}]}, "published[0]: the unit kg does not fit a value in s"),
        ({"published": [{"value": 1, "metric": "totals"}]}, "published[0]: metric is totals"),
        (
            {"claims": [AT_SPEED | {"kind": "within", "high": 1, "at": {}, "unit": "GB"}]},
            "claim c: the unit GB does not fit a value in s",
        ),
        ({"claims": [AT_SPEED | {"kind": "ended", "outcome": "finished"}]}, "at: there is no factor speed"),
        (
            {"claims": [AT_SPEED | {"kind": "trend", "along": "rates", "goes": "falls", "at": {}}]},
            "claim c: along: there is no factor rates: there are method, rate, world",
        ),
        (
            {"claims": [AT_SPEED | {"kind": "first", "of": "kind", "level": "voltage", "at": {}}]},
            "claim c: of: there is no factor kind",
        ),
        (
            {
                "claims": [
                    AT_SPEED
                    | {
                        "kind": "compared",
                        "at": {},
                        "side": "below",
                        "a": {"method": "single"},
                        "b": {"m": 1},
                    }
                ]
            },
            "claim c: b: there is no factor m",
        ),
    ],
)
def test_what_is_stated_about_nothing_is_refused_before_anything_is_computed(
    fields: dict[str, Any], words: str
) -> None:
    with pytest.raises(SpecError) as refusal:
        check_statements(experiment_of(METHODS, RATES, **fields))
    assert words in str(refusal.value) and str(refusal.value).startswith("test, ")
    check_statements(experiment_of(METHODS, RATES, published=[{"value": 1, "unit": "ms"}]))


# Tables and figures -------------------------------------------------------------------------------
def test_a_pivot_table_has_the_levels_in_their_order_and_marks_the_best_of_each_row() -> None:
    rows = rows_of("latency_s", dict(reversed(FALLING.items())))
    table = Table(name="t", rows=("rate",), columns=("method",), metric="latency_s")
    made = table_data(experiment_of(), table, rows)
    assert (made.columns, made.row_titles, made.unit) == (
        (("single",), ("Voltage",)),
        ("Rate of the links",),
        "s",
    )
    shown = {row.headings: [(cell.value, cell.best) for cell in row.cells if cell] for row in made.rows}
    assert list(shown) == [("1 Mbit/s",), ("10 Mbit/s",), ("100 Mbit/s",)]
    assert shown["100 Mbit/s",] == [(2.0, False), (1.0, True)]
    assert shown["1 Mbit/s",] == [(2.0, True), (8.0, False)]


@pytest.mark.parametrize(
    ("statistic", "value"),
    [("mean", 3.0), ("median", 2.0), ("min", 1.0), ("max", 6.0), ("std", 7**0.5), ("interval", 3.0)],
)
def test_a_table_takes_the_statistic_over_all_that_falls_into_a_cell(statistic: Any, value: float) -> None:
    rows = rows_of("latency_s", {("single", 1e6): [1.0, 2.0], ("single", 1e7): [6.0]})
    table = Table(name="t", rows=("method",), metric="latency_s", statistic=statistic)
    (row,) = table_data(experiment_of(), table, rows).rows
    (cell,) = row.cells
    assert cell is not None and cell.value == pytest.approx(value) and cell.number == 3
    assert (cell.low is not None) == (statistic == "interval")


def test_a_figure_has_a_line_per_level_and_world_and_published_marks_of_their_own() -> None:
    values = {**FALLING, ("voltage", 1e8, "emulated"): 1.1}
    published = [{"coordinates": {"method": "voltage", "rate": 1e7}, "value": 4.5, "where": "Fig. 1"}]
    experiment = experiment_of(worlds=["predicted", "emulated"], published=published)
    made = figure_data(
        experiment, Figure(name="f", x="rate", series="method", log_x=True), rows_of("latency_s", values)
    )
    (panel,) = made.panels
    lines = {(line.label, line.world): [(spot.x, spot.y) for spot in line.spots] for line in panel.lines}
    assert lines == {
        ("single", "predicted"): [(1e6, 2.0), (1e7, 2.0), (1e8, 2.0)],
        ("Voltage", "predicted"): [(1e6, 8.0), (1e7, 4.0), (1e8, 1.0)],
        ("Voltage", "emulated"): [(1e8, 1.1)],
        ("Voltage", "published"): [(1e7, 4.5)],
    }
    assert (made.x.unit, made.x.log, made.x.categories, made.y.unit) == ("bit/s", True, None, "s")
    assert [crossing.above for crossing in panel.crossings] == ["Voltage"]


def test_bars_have_categories_and_a_facet_makes_panels() -> None:
    figure = Figure(name="f", kind="bars", x="method", facet="rate", metric="latency_s")
    made = figure_data(experiment_of(), figure, rows_of("latency_s", FALLING))
    assert made.x.categories == ("single", "Voltage")
    assert [panel.label for panel in made.panels] == ["1 Mbit/s", "10 Mbit/s", "100 Mbit/s"]
    assert [[spot.x for spot in line.spots] for line in made.panels[0].lines] == [["single", "Voltage"]]


def test_a_scatter_plot_has_one_metric_over_another() -> None:
    rows = rows_of("latency_s", FALLING)
    rows = [
        row.model_copy(update={"metrics": {**row.metrics, "link_bytes": row.metrics["latency_s"] * 10}})
        for row in rows
    ]
    figure = Figure(name="f", kind="scatter", x="link_bytes", series="method")
    made = figure_data(experiment_of(), figure, rows)
    spots = [spot for line in made.panels[0].lines for spot in line.spots if line.label == "Voltage"]
    assert [(spot.x, spot.y) for spot in spots] == [(10.0, 1.0), (40.0, 4.0), (80.0, 8.0)]
    assert (spots[0].x_label, spots[0].note) == ("10 B", "Voltage, 100 Mbit/s")


WRONG = [
    ({"x": "speed"}, "there is no factor speed: there are method, rate, world"),
    ({"x": "rate"}, "method has 2 values and no place"),
    ({"x": "rate", "series": "rate"}, "rate is used twice"),
    ({"x": "rate", "series": "method", "metric": "time"}, "metric is time, which is unknown"),
    ({"kind": "heatmap", "x": "rate"}, "a heat map needs series"),
]


@pytest.mark.parametrize(("fields", "words"), WRONG)
def test_a_figure_that_names_what_is_not_there_is_refused(fields: dict[str, Any], words: str) -> None:
    with pytest.raises(SpecError, match=words):
        figure_data(experiment_of(), Figure(name="f", **fields), rows_of("latency_s", FALLING))


def test_a_mark_says_where_a_published_value_stands_and_how_many_runs_do_not_count() -> None:
    published = [{"coordinates": {"method": "voltage", "rate": 1e7}, "value": 4.5, "where": "Fig. 1"}]
    rows = [
        row.model_copy(update={"metrics": {**row.metrics, "valid": float(row.metrics["latency_s"] != 1.0)}})
        for row in rows_of("latency_s", {**FALLING, ("voltage", 1e7): [4.0, 1.0]})
    ]
    made = figure_data(experiment_of(published=published), Figure(name="f", x="rate", series="method"), rows)
    notes = {
        (line.world, spot.x, spot.note) for line in made.panels[0].lines for spot in line.spots if spot.note
    }
    assert ("published", 1e7, "Fig. 1") in notes
    assert ("predicted", 1e7, "One run does not count as valid.") in notes
