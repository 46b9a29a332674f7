"""The figure of compared runs: an experiment over them, with axes that follow from what differs."""

from __future__ import annotations

from typing import Any

import pytest

from engine.domain.report import Fidelity, RequestReport, RunReport
from engine.domain.scenario import DropDevice, Scenario
from engine.experiments.presentation.compared_runs import RunsFigure, figure_of_runs
from engine.experiments.presentation.compared_view import NONE, RUN, TOKENS, Chosen
from engine.reports.compare import compare
from tests.engine.reports.test_compare import report
from tests.support.tiny_run import PAIR

RATES = "cluster.links[a--b].bit_per_s"


def at(bit_per_s: float) -> Any:
    return PAIR.model_copy(update={"links": (PAIR.links[0].model_copy(update={"bit_per_s": bit_per_s}),)})


def sweep() -> list[RunReport]:
    """Two strategies at two rates, with two seeds each, but the last only once."""
    runs = [
        *(("voltage", 1e7, 0, 1.0), ("voltage", 1e7, 1, 3.0), ("voltage", 1e8, 0, 2.0)),
        *(("voltage", 1e8, 1, 2.0), ("gpipe", 1e7, 0, 5.0), ("gpipe", 1e7, 1, 7.0), ("gpipe", 1e8, 0, 4.0)),
    ]
    return [report(s, strategy=name, cluster=at(rate), seed=seed) for name, rate, seed, s in runs]


def drawn(reports: list[RunReport], **chosen: Any) -> RunsFigure:
    names = [str(number) for number in range(1, len(reports) + 1)]
    made = figure_of_runs(reports, names, compare(reports), Chosen(**chosen))
    assert made is not None
    return made


def marks(made: RunsFigure) -> list[tuple[str, float | str, float | None]]:
    lines = (line for panel in made.figure.panels for line in panel.lines)
    return [(line.label, spot.x, spot.y) for line in lines for spot in line.spots]


def test_repeats_are_one_mark_with_mean_and_interval_over_the_number_that_was_varied() -> None:
    made = drawn(sweep())
    assert (made.view.x, made.view.series, made.view.kind, made.view.log_x) == (
        RATES,
        "strategy",
        "lines",
        True,
    )
    assert marks(made) == [
        ("gpipe", 1e7, 6.0),
        ("gpipe", 1e8, 4.0),
        ("voltage", 1e7, 2.0),
        ("voltage", 1e8, 2.0),
    ]
    first = made.figure.panels[0].lines[1].spots[0]
    # 1 and 3: standard deviation √2, standard error 1, t(1) = 12.706
    assert (first.low, first.high) == pytest.approx((2 - 12.706, 2 + 12.706))
    assert [(one.value, one.digest) for one in first.repeats] == [(1.0, "1"), (3.0, "2")]
    assert first.note == "Runs 1 and 2." and made.figure.x.title == "rate of links"
    assert "the mean of 1 to 2 runs" in made.caption


def test_runs_that_are_no_repeats_are_never_averaged_but_have_series_of_their_own() -> None:
    made = drawn(sweep(), x="strategy", series=NONE)
    assert made.split == ("rate of links",)
    assert made.figure.series == ("rate of links 10 Mbit/s", "rate of links 100 Mbit/s")
    assert len(marks(made)) == 4 and drawn(sweep()).split == ()


def test_every_run_stands_by_itself_where_that_is_asked() -> None:
    made = drawn(sweep(), x=RUN)
    assert sorted(str(x) for _, x, _ in marks(made)) == list("1234567") and made.split == ()


def test_predicted_emulated_and_native_runs_are_lines_of_their_own() -> None:
    emulated = report(2.0).model_copy(update={"world": "emulated"})
    native = report(3.0, dilation="native").model_copy(update={"world": "native"})
    made = drawn([report(1.0), emulated, native, report(4.0, strategy="voltage")], x="strategy")
    found = {
        line.world: [spot.y for spot in line.spots] for line in made.figure.panels[0].lines if line.label
    }
    assert {*found} == {"predicted", "emulated", "native"} and found["native"] == [3.0]


def test_values_that_read_alike_are_kept_apart_and_ordered_by_size() -> None:
    close = [report(s, cluster=at(rate)) for s, rate in ((3.0, 100.3e6), (1.0, 100.1e6), (2.0, 100.2e6))]
    made = drawn(close, kind="bars")
    rates = ("100.1 Mbit/s (run 2)", "100.2 Mbit/s (run 3)", "100.3 Mbit/s (run 1)")
    assert made.figure.x.categories == rates
    spots = made.figure.panels[0].lines[0].spots
    assert sorted((spot.coordinates["x"], spot.y) for spot in spots) == [
        (100.1e6, 1),
        (100.2e6, 2),
        (100.3e6, 3),
    ]


def test_a_box_is_of_the_tokens_of_repeats_together() -> None:
    def with_tokens(*times_s: float, **spec: Any) -> RunReport:
        request = RequestReport(index=0, arrival_s=0, ttft_s=9, token_s=times_s, output_tokens=())
        return report(**spec).model_copy(update={"requests": (request,)})

    runs = [
        with_tokens(9, 10, 12),
        with_tokens(9, 12, 16, 21, seed=1),
        with_tokens(9, 16, strategy="voltage"),
    ]
    made = drawn(runs, metric=TOKENS)
    assert made.view.kind == "boxes" and "middle half" in made.caption
    gpipe, voltage = (spot.box for line in made.figure.panels[0].lines for spot in line.spots)
    assert gpipe is not None and voltage is not None
    # the times between tokens are 1, 2 and 3, 4, 5
    assert (gpipe.least, gpipe.lower, gpipe.median, gpipe.upper, gpipe.most, gpipe.count) == (
        1,
        2,
        3,
        4,
        5,
        5,
    )
    assert (voltage.median, voltage.count) == (7, 1)


def test_a_choice_that_these_runs_do_not_have_is_a_sentence() -> None:
    made = drawn(sweep(), x="seed", metric="nothing", log_x=True)
    assert made.view.x == RATES and made.view.metric == "latency_s" and len(made.problems) == 2
    words = drawn([report(1.0), report(2.0, strategy="voltage")], log_x=True)
    assert words.problems == (
        "The address asks for a logarithmic x axis, which needs numbers above 0 and strategy has others: "
        "the axis is not logarithmic.",
    )


def test_a_logarithmic_axis_has_no_place_for_nothing_and_says_which_runs() -> None:
    runs = [report(1.0), report(2.0, strategy="voltage")]
    idle = [one.model_copy(update={"latency_s": s}) for one, s in zip(runs, (0.0, 2.0), strict=True)]
    made = drawn(idle, metric="latency_s", log_y=True)
    assert made.missing == "Run 1: not above 0, so that a logarithmic axis has no place for the value."


def test_a_mark_says_why_it_cannot_simply_be_compared_and_counts_runs_that_are_not_valid() -> None:
    off = report(2.0, strategy="voltage").model_copy(update={"fidelity": Fidelity(valid=False)})
    made = drawn([report(1.0), off])
    notes = {spot.y: spot.note for line in made.figure.panels[0].lines for spot in line.spots}
    assert notes[2.0] == "Run 2: voltage on pair. The times of this run are not valid: see its report."


def test_marks_are_in_the_order_of_the_names_on_the_axis() -> None:
    made = drawn([report(1.0, strategy="voltage"), report(2.0)])
    assert [x for _, x, _ in marks(made)] == ["gpipe (run 2)", "voltage (run 1)"]


def test_a_name_on_the_axis_has_the_numbers_of_its_runs_or_how_many_they_are() -> None:
    runs = [report(1.0), *(report(2.0, strategy="voltage", seed=seed) for seed in range(3))]
    assert drawn(runs).figure.x.categories == ("gpipe (run 1)", "voltage (runs 2, 3 and 4)")
    more = [*runs, report(2.0, strategy="voltage", seed=4)]
    assert drawn(more).figure.x.categories == ("gpipe (run 1)", "voltage (4 runs)")


def test_the_time_of_a_change_is_called_so_on_the_axis() -> None:
    def dropped(at_s: float) -> RunReport:
        return report(at_s, scenario=Scenario(changes=(DropDevice(at_s=at_s, device="b"),)))

    x = drawn([dropped(0.1), dropped(0.2)]).figure.x
    assert (x.title, x.unit) == ("time of change 1", "s")
