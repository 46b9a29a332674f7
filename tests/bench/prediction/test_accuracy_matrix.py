"""The accuracy matrix: which runs are carried out within the time, and what the table says of them."""

import json
from functools import cache
from pathlib import Path

from bench.prediction.accuracy_matrix import EXPERIMENT, carry_out_for, in_order, points_of, spreads_of
from bench.prediction.accuracy_table import Spread, table_of
from engine.domain.scenario import Scenario, SetLoss
from engine.experiments.design.expand import Point
from engine.experiments.design.files import load_file
from engine.experiments.design.sources import Sources
from engine.experiments.execution.campaign import Task, tasks_of
from engine.experiments.execution.point import Emulation
from engine.experiments.results.rows import Result
from engine.experiments.results.versions import Versions
from engine.runs.predict import predict
from engine.strategies.registry import STRATEGIES
from tests.support.small_cases import LLAMA, spec_of, star
from topologies.files import load

RUN = spec_of("gpipe", LLAMA, star([1e9, 2e9]))
TOO_SMALL = spec_of("gpipe", LLAMA, star([1e9, 2e9], memory_bytes=1e3))


class Emulator:
    """Predicts instead of emulating, and notes what it was asked for."""

    def __init__(self):
        self.asked = []

    def run(self, spec):
        self.asked.append(spec.strategy)
        return predict(spec)


def tasks(*runs):
    return [Task(spec, digest, world) for digest, spec in runs for world in ("predicted", "emulated")]


def carried_out(tasks, budget_s, times_s):
    emulator, kept, clock = Emulator(), [], iter(times_s)
    carry_out_for(budget_s, tasks, kept.append, Emulation(emulator.run, "1"), lambda: next(clock))
    return emulator, [(result.digest, result.world) for result in kept]


def point(digest, **coordinates):
    return Point({"method": "a", "condition": "calm", **coordinates}, 0, None, "", digest)


def ordered(points, *, done=()):
    """The digests of `points` in order, each run's prediction before its emulation."""
    left = [Task(RUN, one.digest, world) for one in points for world in ("emulated", "predicted")]
    found = [(task.digest, task.world) for task in in_order(points, left, done)]
    assert [world for _, world in found] == ["predicted", "emulated"] * len(points)
    return [digest for digest, _ in found[::2]]


def test_every_run_is_predicted_before_it_is_emulated_and_equal_ones_come_in_the_order_of_their_hashes():
    assert ordered([point("b"), point("c"), point("a")]) == ["a", "b", "c"]


def test_the_next_run_is_of_the_levels_that_have_had_the_least():
    points = [point("1"), point("2"), point("3", method="b"), point("4", condition="burst"), point("5")]
    assert ordered(points) == ["1", "3", "4", "2", "5"]


def test_runs_that_are_done_count_as_had():
    points = [point("1"), point("2", method="b"), point("0")]
    assert ordered(points[:2], done=()) == ["1", "2"]
    left = [Task(RUN, one.digest, "emulated") for one in points[:2]]
    assert [task.digest for task in in_order(points, left, {"0"})] == ["2", "1"]


@cache
def matrix():
    return points_of(load_file(EXPERIMENT), Sources(cluster=load, preset=None))


def test_the_first_runs_of_the_matrix_have_every_level_of_every_factor():
    points = matrix()
    first = {
        task.digest for task in in_order(points, tasks_of(points, ["emulated"], {}, Versions()), ())[:150]
    }
    had = {level for one in points if one.digest in first for level in one.coordinates.items()}
    assert had == {level for one in points for level in one.coordinates.items()}
    pairs = [
        (one.coordinates["method"], one.coordinates["condition"]) for one in points if one.digest in first
    ]
    assert len(set(pairs)) >= 0.9 * 17 * 6


def test_a_run_without_a_plan_is_not_emulated():
    emulator, found = carried_out(tasks(("a", TOO_SMALL)), 10, [0] * 9)
    assert (emulator.asked, found) == ([], [("a", "predicted")])


def test_no_run_begins_after_the_time_is_over():
    found = carried_out(tasks(("a", RUN), ("b", RUN)), 10, [0, 1, 2, 11])[1]
    assert found == [("a", "predicted"), ("a", "emulated")]


def result(digest, world, total_s, valid=1.0, size=100.0, outcome="finished", **more):
    metrics = {"latency_s": total_s, "ttft_s": total_s / 2, "link_bytes": size, "valid": valid} | more
    return Result(digest=digest, world=world, outcome=outcome, metrics=metrics)


def rows_of(points, found, spreads=None, native_rows=Path("nothing there")):
    table = table_of(points, {one.key: one for one in found}, spreads or {}, native_rows)
    return {row[0]: row[1:] for row in table.rows}, table


def test_the_table_has_the_errors_of_runs_that_finished_in_both_worlds():
    points = [Point({"method": name}, 0, None, "", name) for name in ("a", "b", "c", "d")]
    found = [
        result("a", "predicted", 1.10),
        result("a", "emulated", 1.0),
        result("b", "predicted", 0.80, size=99.0),
        result("b", "emulated", 1.0, valid=0.0),
        result("c", "predicted", 1.0, outcome="no_plan"),
        result("d", "predicted", 1.0),
    ]
    rows, table = rows_of(points, found)
    assert rows["all"] == ("2", "15.0%", "19.5%", "-20.0%", "15.0%", "-20.0%", "", "", "1 equal")
    assert rows["all that are valid"][:4] == ("1", "10.0%", "10.0%", "+10.0%")
    assert rows["method: b"] == ("0", "", "", "", "", "", "", "", "")
    assert "2 of 4 runs" in table.title and "1 more have no plan" in table.title
    assert table.chart.series == {"a": ((1.10, 1.0),)}


def test_bytes_are_equal_only_if_they_are_on_every_link():
    """100 bytes in all, but one world has them on the way back."""
    points = [point("a"), point("b")]
    found = [
        result("a", "predicted", 1.0, **{"bytes[x--y]": 60.0, "bytes[y--x]": 40.0}),
        result("a", "emulated", 1.0, **{"bytes[x--y]": 60.0, "bytes[y--x]": 40.0}),
        result("b", "predicted", 1.0, **{"bytes[x--y]": 60.0, "bytes[y--x]": 40.0}),
        result("b", "emulated", 1.0, **{"bytes[x--y]": 40.0, "bytes[y--x]": 60.0}),
    ]
    assert rows_of(points, found)[0]["all"][-1] == "1 equal"


def test_runs_that_lose_packets_are_compared_by_their_means_over_seeds():
    """Emulated 1 s and 3 s, predicted 2.2 s on average: 10 % more. Of the two one is between the extremes."""
    points = [point("a"), point("b")]
    found = [result(name, world, 9.0) for name in "ab" for world in ("predicted",)]
    found += [result("a", "emulated", 1.0), result("b", "emulated", 3.0)]
    spread = Spread((1.5, 2.0, 3.1))
    rows = rows_of(points, found, {"a": spread, "b": spread})[0]
    name = "packets are lost: means over seeds (1 of 2 between the predicted extremes)"
    assert rows[name][:3] == ("1", "10.0%", "10.0%")


def test_only_runs_that_lose_packets_are_predicted_with_more_seeds():
    loss = SetLoss(at_s=0.0, link=RUN.cluster.links[0].name, loss_frac=0.2)
    lossy = RUN.model_copy(update={"scenario": Scenario(changes=(loss,))})
    points = [point("a")._replace(spec=RUN), point("b")._replace(spec=lossy)]
    points.append(point("c")._replace(spec=lossy.model_copy(update={"seed": 7})))
    found = [result(name, "emulated", 1.0) for name in "abc"]
    spreads = spreads_of(points, {one.key: one for one in found}, seeds=4)
    assert set(spreads) == {"b", "c"}
    assert spreads["b"] is spreads["c"]
    assert len(set(spreads["b"].latencies_s)) > 1


def test_native_runs_stand_in_the_table_by_their_number_of_devices(tmp_path):
    """Medians of 1, 2 and 6 seconds against 2.5 predicted: a quarter more."""
    seconds = [{"total_s": value, "first_s": value, "later_s": 0.0} for value in (1.0, 2.0, 6.0)]
    row = {"case": {"devices": 2}, "measured": seconds}
    row["predicted"] = {"total_s": 2.5, "first_s": 1.0, "later_s": 0.0}
    file = tmp_path / "rows.json"
    file.write_text(json.dumps([row]))
    rows = rows_of([point("a")], [], native_rows=file)[0]
    assert rows["native: 2 devices"] == ("1", "25.0%", "25.0%", "+25.0%", "50.0%", "-50.0%", "", "", "")


def test_the_matrix_has_methods_of_the_registry_and_three_clusters_models_and_rates():
    experiment = load_file(EXPERIMENT)
    levels = {factor.name: len(factor.values) for factor in experiment.factors}
    assert levels == {"method": 17, "cluster": 3, "model": 3, "rate": 3, "condition": 6}
    assert {level.value for level in experiment.factors[0].values} <= {one.name for one in STRATEGIES}


def test_every_point_of_the_matrix_is_a_run():
    points = matrix()
    assert len(points) == 17 * (27 + 5 + 2)
    assert not [point.problem for point in points if point.problem]
