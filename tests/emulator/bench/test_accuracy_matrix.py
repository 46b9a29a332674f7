"""The accuracy matrix: which runs are carried out within the time, and what the table says of them."""

from emulator.bench.accuracy_matrix import EXPERIMENT, carry_out_for, table_of
from engine.experiments.design.expand import Point, expand
from engine.experiments.design.files import load_file
from engine.experiments.design.sources import Sources
from engine.experiments.execution.campaign import Task
from engine.experiments.execution.point import Emulation
from engine.experiments.results.rows import Result
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
    return [Task(spec, digest, world) for digest, spec in runs for world in ("simulated", "emulated")]


def carried_out(tasks, budget_s, times_s):
    emulator, kept, clock = Emulator(), [], iter(times_s)
    carry_out_for(budget_s, tasks, kept.append, Emulation(emulator.run, "1"), lambda: next(clock))
    return emulator, [(result.digest, result.world) for result in kept]


def test_every_run_is_predicted_before_it_is_emulated_in_the_order_of_the_hashes():
    found = carried_out(tasks(("b", RUN), ("a", RUN)), 10, [0] * 9)[1]
    assert found == [("a", "simulated"), ("a", "emulated"), ("b", "simulated"), ("b", "emulated")]


def test_a_run_without_a_plan_is_not_emulated():
    emulator, found = carried_out(tasks(("a", TOO_SMALL)), 10, [0] * 9)
    assert (emulator.asked, found) == ([], [("a", "simulated")])


def test_no_run_begins_after_the_time_is_over():
    found = carried_out(tasks(("a", RUN), ("b", RUN)), 10, [0, 1, 2, 11])[1]
    assert found == [("a", "simulated"), ("a", "emulated")]


def result(digest, world, total_s, valid=1.0, size=100.0, outcome="finished"):
    metrics = {"total_s": total_s, "first_token_s": total_s / 2, "bytes": size, "valid": valid}
    return Result(digest=digest, world=world, outcome=outcome, metrics=metrics)


def test_the_table_has_the_errors_of_runs_that_finished_in_both_worlds():
    points = [Point({"method": name}, 0, None, "", name) for name in ("a", "b", "c", "d")]
    found = [
        result("a", "simulated", 1.10),
        result("a", "emulated", 1.0),
        result("b", "simulated", 0.80, size=99.0),
        result("b", "emulated", 1.0, valid=0.0),
        result("c", "simulated", 1.0, outcome="no_plan"),
        result("d", "simulated", 1.0),
    ]
    table = table_of(points, {one.key: one for one in found})
    rows = {row[0]: row[1:] for row in table.rows}
    assert rows["all"] == ("2", "15.0%", "19.5%", "-20.0%", "15.0%", "-20.0%", "", "", "1 equal")
    assert rows["all that are valid"][:4] == ("1", "10.0%", "10.0%", "+10.0%")
    assert rows["method: b"] == ("0", "", "", "", "", "", "", "", "")
    assert "2 of 4 runs" in table.title and "1 more have no plan" in table.title


def test_the_matrix_has_every_method_and_three_clusters_models_and_rates():
    experiment = load_file(EXPERIMENT)
    levels = {factor.name: len(factor.values) for factor in experiment.factors}
    assert levels == {"method": len(STRATEGIES), "cluster": 3, "model": 3, "rate": 3, "condition": 6}
    assert {level.value for level in experiment.factors[0].values} == {one.name for one in STRATEGIES}


def test_every_point_of_the_matrix_is_a_run():
    points = expand(load_file(EXPERIMENT), Sources(cluster=load, preset=None))
    assert len(points) == 17 * (27 + 5)
    assert not [point.problem for point in points if point.problem]
