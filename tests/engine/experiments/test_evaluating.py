"""Means, intervals, best and break-even against numbers worked by hand."""

from __future__ import annotations

import math

import pytest

from engine.domain.presented import Figure
from engine.domain.quantity import Quantity
from engine.experiments.presentation.figure_data import figure_data
from engine.experiments.results.best import best
from engine.experiments.results.break_even import crossings
from engine.experiments.results.cells import cells
from engine.experiments.results.claims import verdicts
from tests.support.experiment_rows import FALLING, experiment_of, rows_of

TOTAL = Quantity(metric="latency_s")


# Statistics over seeds ---------------------------------------------------------------------------
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


# Best and break-even -----------------------------------------------------------------------------
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


@pytest.mark.parametrize(("more_frac", "winners"), [(1e-6, 2), (1e-4, 1)])
def test_predictions_that_six_digits_do_not_tell_apart_win_together(more_frac, winners) -> None:
    rows = rows_of("latency_s", {("single", 1e6): 3.0, ("voltage", 1e6): 3.0 * (1 + more_frac)})
    (found,) = best(experiment_of(), rows, TOTAL, of="method")
    assert (len(found.winners), found.distinguishable) == (winners, winners == 1)


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


def test_above_a_crossing_is_who_has_more_where_more_is_better() -> None:
    rates = (1e6, 1e7, 1e8)
    values = {("voltage", rate): value for rate, value in zip(rates, (0.5, 1.0, 4.0), strict=True)}
    values |= {("single", rate): 2.0 for rate in rates}
    quantity = Quantity(metric="tokens_per_s")
    (crossing,) = crossings(experiment_of(), rows_of("tokens_per_s", values), quantity, "rate", "method")
    assert (crossing.below, crossing.above, crossing.x) == ("single", "Voltage", pytest.approx(10**7.5))
    assert crossing.text.startswith("Voltage is better than single where rate of the links is above 31.6")


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
    claim = {
        "kind": "compared",
        "name": "c",
        "text": "t",
        "a": {"method": "voltage"},
        "b": {"method": "single"},
        "side": "below",
        "at": {"rate": 1e8},
    }
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
