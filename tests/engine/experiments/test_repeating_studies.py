"""When a cell of a repeated study differs, and where its weights are found."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from engine.experiments.results.rows import Row
from engine.experiments.studies.contents import contents_of
from engine.experiments.studies.here import runs_here
from engine.experiments.studies.private import without_places
from engine.experiments.studies.repeat import compared
from tests.support.experiment_rows import experiment_of, rows_of
from tests.support.packed_study import ABOUT, CLUSTERS, carried


def measured(values: list[float], world: str = "emulated", outcome: str = "finished") -> list[Row]:
    named = {("single", 1e6, world): values}
    return [row.model_copy(update={"outcome": outcome}) for row in rows_of("latency_s", named)]


SEEDED = experiment_of(seeds=[0, 1, 2])


@pytest.mark.parametrize(
    ("before", "after", "verdict"),
    [
        ([1.0, 1.1, 1.2], [1.15, 1.2, 1.25], "same"),  # 0.85 to 1.35, and 1.08 to 1.32
        ([1.0, 1.1, 1.2], [2.0, 2.1, 2.2], "differs"),
        ([1.0, 1.0, 1.0], [1.0 + 2e-5] * 3, "differs"),
        ([1.0, 1.0, 1.0], [1.0 + 5e-6] * 3, "same"),  # 1.00000 and 1.00001 are shown
        ([1.0, 1.0, 1.0 + 2**-50], [1.0 - 2**-40] * 3, "same"),  # of one device: rounding
        ([1.0], [1.0 + 2**-40], "same"),
        ([1.0], [1.0], "same"),
        ([1.0], [1.3], "no interval"),
        ([1.0, 1.1, 1.2], [], "not repeated"),
    ],
)
def test_a_measured_cell_differs_if_the_intervals_have_no_point_in_common(
    before: list[float], after: list[float], verdict: str
) -> None:
    (found,) = compared(SEEDED, measured(before), measured(after) if after else [])
    assert found.verdict == verdict
    assert (found.metric == "latency_s") == (verdict in ("differs", "no interval"))


def test_a_predicted_point_differs_by_its_last_digit_and_seed_by_seed() -> None:
    before, after = measured([1.0, 2.0], "predicted"), measured([1.0, 2.0 + 2**-51], "predicted")
    same, other = compared(SEEDED, before, after)
    assert (same.verdict, other.verdict) == ("same", "differs")
    assert other.coordinates["seed"] == 1 and other.study != other.repeated
    assert [one.verdict for one in compared(SEEDED, before, [])] == ["not repeated"] * 2


def test_a_prediction_from_another_hosts_times_is_compared_as_what_is_measured() -> None:
    ours, theirs = (
        [row.model_copy(update={"calibration": of}) for row in measured([1.0], "predicted")] for of in "ab"
    )
    (found,) = compared(
        SEEDED, ours, [row.model_copy(update={"metrics": {"latency_s": 2.0}}) for row in theirs]
    )
    assert found.verdict == "no interval"


@pytest.mark.parametrize("world", ["predicted", "emulated"])
def test_a_run_that_ends_otherwise_differs(world: str) -> None:
    (found,) = compared(SEEDED, measured([1.0], world), measured([1.0], world, "out_of_memory"))
    assert (found.verdict, found.metric, found.repeated) == ("differs", "outcome", "out_of_memory")


def test_weights_are_found_by_their_digest_wherever_they_are(tmp_path: Path) -> None:
    study, _ = contents_of([carried()], ABOUT, CLUSTERS)
    (point, _) = carried().points
    assert point.spec is not None
    runs = {point.digest: without_places(point.spec)}
    assert runs_here(study, tmp_path, runs).runs[point.digest] == point.spec
    other = tmp_path / "copy"
    shutil.copytree(point.spec.weights.directory, other)
    renamed = runs[point.digest].model_copy(
        update={"model": runs[point.digest].model.model_copy(update={"name": "of-mine"})}
    )
    nowhere = runs_here(study, tmp_path, {"a": renamed})
    assert not nowhere.runs and "is not here: give its directory with --model." in nowhere.lacking[0]
    (found,) = runs_here(study, tmp_path, {"a": renamed}, [other]).runs.values()
    assert found.weights.directory == str(other)
