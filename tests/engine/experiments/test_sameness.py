"""Methods that are one computation by several names, and changes that change nothing: of real predictions,
and of rows with the noise of measurements.
"""

from __future__ import annotations

import csv
import io
from typing import Any

import pytest

from engine.domain.presented import Figure, Table
from engine.domain.quantity import Quantity
from engine.domain.report import Recovery
from engine.experiments.presentation.export import csv_text, records_of_figure
from engine.experiments.presentation.figure_data import figure_data
from engine.experiments.presentation.origin import Origin
from engine.experiments.results.best import best
from engine.experiments.results.break_even import crossings
from engine.experiments.results.pivot import table_data
from engine.experiments.results.rows import Row, result_of
from engine.experiments.results.sameness import notes_of
from engine.reports.participation import unfelt_text
from engine.runs.predict import predict
from tests.support.experiment_rows import RATES, experiment_of
from tests.support.web import run_spec

FIGURE = Figure(name="f", x="rate", series="method")
LATENCY = Quantity(metric="latency_s")
EXPERIMENT = experiment_of(
    {"name": "method", "path": "strategy", "values": ["single", "gpipe", "voltage"]},
    RATES,
    worlds=["predicted", "emulated"],
)


def row(method: str, rate: float, latency_s: float, world: str = "predicted", **work: float) -> Row:
    """What a run gives whose only device is `a` but for `work`; its prediction took 2 s."""
    metrics = {
        "flops[a]": 5.0,
        "peak_memory_bytes[a]": 7.0,
        "latency_s": latency_s,
        "predicted_latency_s": 2.0,
    }
    coordinates: dict[str, Any] = {"method": method, "rate": rate}
    alone = "" if work else "a"
    return Row(
        coordinates=coordinates, seed=0, world=world, digest=f"{method}{rate}", outcome="finished",
        alone=alone, metrics=metrics | work,
    )  # fmt: skip


def measured(voltage: float = 8.0) -> list[Row]:
    """Two methods on one device whose measurements cross between 1e6 and 1e7 by noise, and one on two."""
    found = []
    for rate, single, gpipe in ((1e6, 2.001, 1.998), (1e7, 1.997, 2.002)):
        found += [row("single", rate, single, "emulated"), row("gpipe", rate, gpipe, "emulated")]
        found.append(row("voltage", rate, voltage, "emulated", **{"flops[b]": 5.0}))
    return found


def test_what_is_one_computation_does_not_cross_and_none_of_it_wins_by_noise() -> None:
    rows = measured()
    found = crossings(EXPERIMENT, rows, LATENCY, "rate", "method")
    assert found == ()
    first, second = best(EXPERIMENT, rows, LATENCY, of="method")
    assert (first.winners, first.same, first.alone, first.next) == (("gpipe",), ("single",), "a", "voltage")
    assert (second.winners, second.same) == (("single",), ("gpipe",))
    assert second.told == "single (the same plan: gpipe)"
    # in words that claim nothing where there is nothing else
    alone = best(EXPERIMENT, [one for one in rows if one.alone], LATENCY, of="method")
    assert alone[0].told == "gpipe and single are one plan, on a alone"


def test_a_table_marks_all_names_of_the_best_computation_and_no_best_where_there_is_one() -> None:
    table = Table(name="t", metric="latency_s", rows=("rate",), columns=("method",))

    def marked(rows: list[Row]) -> list[list[bool]]:
        return [
            [bool(cell and cell.best) for cell in line.cells]
            for line in table_data(EXPERIMENT, table, rows).rows
        ]

    assert marked(measured()) == [[True, True, False]] * 2
    assert marked(measured(voltage=1.0)) == [[False, False, True]] * 2
    assert marked([one for one in measured() if one.alone]) == [[False, False]] * 2


def test_one_line_is_drawn_for_one_computation_and_its_data_keeps_every_method() -> None:
    data = figure_data(EXPERIMENT, FIGURE, measured())
    (panel,) = data.panels
    assert [(line.label, line.same_as) for line in panel.lines] == [
        ("single", ""),
        ("gpipe", "single"),
        ("voltage", ""),
    ]
    assert [line.name for line in panel.drawn] == ["single, gpipe", "voltage"]
    entries = [(entry.name, entry.label, entry.place) for entry in data.legend.series]
    assert entries == [("single, gpipe", "single", 0), ("voltage", "voltage", 2)], "its colour stays"
    (heat,) = figure_data(EXPERIMENT, FIGURE.model_copy(update={"kind": "heatmap"}), measured()).panels
    assert [line.name for line in heat.drawn] == ["single", "gpipe", "voltage"], "it has all of its rows"
    records = records_of_figure(data, Origin(experiment="t", digest="0" * 16, version=1, code=("x",)))
    read = list(csv.DictReader(io.StringIO(csv_text(records))))
    assert [one["same_as"] for one in read] == ["", "", "single", "single", "", ""]


def test_a_level_whose_best_points_alone_were_measured_stands_for_the_others_still() -> None:
    predicted = [row(method, rate, 2.0) for rate in (1e6, 1e7) for method in ("single", "gpipe")]
    for measured_one, drawn in (
        ("single", [("single", ""), ("single", ""), ("gpipe", "single")]),
        ("gpipe", None),
    ):
        rows = [*predicted, row(measured_one, 1e6, 2.1, "emulated")]
        (panel,) = figure_data(EXPERIMENT, FIGURE, rows).panels
        found = [(line.label, line.same_as) for line in panel.lines]
        assert found == (drawn or [("single", ""), ("gpipe", ""), ("gpipe", "")])


def test_some_memory_more_or_less_tells_only_runs_on_several_devices_apart() -> None:
    several = {"flops[b]": 5.0}
    for work, is_one in (({}, True), (several, False)):
        one, other = (row("gpipe", 1e6, 2.0, **work), row("single", 1e6, 2.0, **work))
        assert one.computation == other.computation
        more = other.model_copy(update={"metrics": other.metrics | {"peak_memory_bytes[a]": 7.007}})
        assert (one.computation == more.computation) is is_one


def test_levels_that_differ_at_one_place_are_two_lines() -> None:
    rows = measured()
    rows[4] = row("gpipe", 1e7, 2.002, "emulated", **{"flops[b]": 1.0})
    (panel,) = figure_data(EXPERIMENT, FIGURE, rows).panels
    assert all(line.same_as == "" for line in panel.lines)
    assert notes_of(EXPERIMENT, rows) == ()


# Of real predictions --------------------------------------------------------------------------------
def predicted(method: str, **fields: Any) -> Row:
    report = predict(run_spec(strategy=method, **fields))
    result = result_of(report, digest=method, world="predicted")
    return Row(coordinates={"method": method, "rate": 1e6}, seed=0, **result.model_dump())


@pytest.fixture(scope="module")
def on_lab() -> list[Row]:
    return [predicted(method) for method in ("single", "gpipe", "voltage")]


def test_methods_whose_plans_stay_on_one_device_are_said_to(on_lab: list[Row]) -> None:
    assert [one.alone for one in on_lab] == ["desk", "desk", ""]
    (note,) = notes_of(EXPERIMENT, on_lab)
    assert (note.kind, note.sentence) == (
        "same",
        "single and gpipe compute on desk alone, so they are one line and one result.",
    )
    (note,) = notes_of(EXPERIMENT, on_lab[:2])
    assert (note.kind, note.sentence) == (
        "one_plan",
        "single and gpipe compute on desk alone: this compares one plan with itself.",
    )


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (
            {"kind": "drop_device", "device": "window"},
            "window takes part in no plan: the loss of window changes nothing.",
        ),
        (
            {"kind": "set_rate", "link": "window--hub", "bit_per_s": 1e6},
            "window–hub carries nothing: the rate of 1 Mbit/s on window–hub changes nothing.",
        ),
    ],
)
def test_a_change_of_what_takes_no_part_is_said_to_change_nothing(
    change: dict[str, Any], sentence: str
) -> None:
    scenario = {"changes": [{**change, "at_s": 1e-4}]}
    quiet, felt = predicted("gpipe", scenario=scenario), predicted("voltage", scenario=scenario)
    assert (quiet.outcome, quiet.unfelt, felt.unfelt) == ("finished", sentence, "")
    (note,) = (note for note in notes_of(EXPERIMENT, [quiet, felt]) if note.kind == "unfelt")
    finished = sum(one.finished for one in (quiet, felt))
    assert note.sentence == (sentence if finished == 1 else f"{sentence[:-1]}, in 1 of 2 runs.")


def test_a_device_for_which_a_new_plan_was_made_has_changed_something() -> None:
    """What it did in the plan before it failed, the report's plan, the last one, does not show."""
    dropped = {"changes": [{"kind": "drop_device", "device": "window", "at_s": 1e-4}]}
    report = predict(run_spec(strategy="gpipe", scenario=dropped))
    assert unfelt_text(report).startswith("window takes part in no plan")
    recovery = Recovery(
        device="window", how="killed", at_s=1e-4, detect_s=0.1,
        replanned=True, replan_s=0.0, reload_s=0.0, rebuild_s=None,
    )  # fmt: skip
    assert unfelt_text(report.model_copy(update={"recoveries": (recovery,)})) == ""
