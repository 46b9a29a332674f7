"""Where every method is meant to win: its runs can be planned, and the table compares them."""

from functools import cache

import pytest

from bench.strategies import wins
from bench.strategies.wins import HOMES, best_of, described, measure_wins, predictions, spec_of
from engine.runs.predict import predict
from engine.strategies.registry import STRATEGIES

BASELINES = {"accelerate", "gpipe", "deepspeed", "pipeline_offload", "single", "edge_only"}
"""Others may be as fast or faster on their ground, too."""
BEYOND_ITS_PAPER = {
    "adaptlink": {"megatron", "tpi_llm", "tpi_llm_offload", "galaxy", "lime"},
    "edgeformer": {"lime"},
    "edgeshard": {"lime"},
}
"""Method → rivals that its paper does not have: their planner may divide the same columns better, and LIME's,
which is not its paper's rule, passes a prompt on in parts, so that devices compute at the same time.
"""


def test_homes_are_of_methods_that_there_are_one_each_in_the_order_of_the_registry():
    at_home = {home.strategy for home in HOMES}
    assert [home.strategy for home in HOMES] == [one.name for one in STRATEGIES if one.name in at_home]


@cache
def predictions_of(name):
    """Those of the home of this method, for all tests."""
    (home,) = (home for home in HOMES if home.strategy == name)
    return predictions(home)


def named(home):
    return home.strategy


@pytest.mark.long("engine", "bench/strategies")
@pytest.mark.parametrize("home", [one for one in HOMES if one.strategy not in BASELINES], ids=named)
def test_a_method_of_a_paper_is_no_slower_than_any_other_where_it_is_meant_to_win(home):
    found = dict(predictions_of(home.strategy))
    own_s = found.pop(home.strategy)
    rivals = found.keys() - BEYOND_ITS_PAPER.get(home.strategy, set())
    names, best_s = best_of({name: found[name] for name in rivals})
    assert own_s <= 1.005 * best_s, f"{names}: {best_s:.4g} s, {home.strategy} {own_s:.4g} s"


@pytest.mark.parametrize("home", [one for one in HOMES if one.strategy in BASELINES], ids=named)
def test_a_baseline_finishes_where_it_is_meant_to_be_at_home(home):
    assert predict(spec_of(home, home.strategy, home.params)).outcome.kind == "finished"


def test_the_fastest_methods_are_named_together():
    assert best_of({"a": 2.0, "b": 1.0, "c": 1.004, "d": 1.1}) == (["b", "c"], 1.0)


def test_the_table_has_the_time_of_the_method_and_of_the_best_alternative(monkeypatch):
    homes = tuple(home for home in HOMES if home.strategy in ("tpi_llm", "cloud_only"))
    monkeypatch.setattr(wins, "HOMES", homes)
    monkeypatch.setattr(wins, "predictions", lambda home: predictions_of(home.strategy))
    asked = []

    def run(spec):
        asked.append(spec.strategy)
        return None if spec.strategy == "tpi_llm" else 1.5

    table = measure_wins(run)
    assert [row[0] for row in table.rows] == ["tpi_llm", "cloud_only"]
    assert [row[3] for row in table.rows] == ["not valid", "1.5 s"]
    assert asked[::2] == ["tpi_llm", "cloud_only"]
    assert asked[1] == table.rows[0][4].split(", ")[0]


def test_a_run_is_described_by_its_cluster_model_and_workload():
    (home,) = (home for home in HOMES if home.strategy == "edgeshard")
    said = described(spec_of(home, "edgeshard", {}))
    assert said == "10/20/5 GFLOP/s, 100 MB, 10 Mbit/s, 2 ms; tinyllama-42m, 32+8 tokens"
