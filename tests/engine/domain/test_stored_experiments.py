"""Stored experiments of earlier versions: every point stays the run that it was."""

import json
from pathlib import Path
from typing import Any

import pytest

import topologies
from engine.domain.stored import SCHEMA
from engine.domain.stored_experiment import read_experiment, upgrade_experiment
from engine.experiments.design.expand import expand
from engine.experiments.design.files import parse_json
from engine.experiments.design.sources import Sources

RECORDED = Path(__file__).parents[2] / "webapp" / "runs" / "stored" / "v5" / "experiment.json"
RUNS_OF_VERSION_5 = {
    "base": ({"mode": "dp"}, 9),
    "path": ({"mode": "dp"}, 10),
    "all": ({"online_planner": "layers"}, 12),
    "known": ({"online_planner": "layers"}, 0),
}
"""Level → parameters of LIME without `assumed_tokens`, and that, as version 5 expanded the file."""


def recorded() -> dict[str, Any]:
    document: dict[str, Any] = json.loads(RECORDED.read_text(encoding="utf-8"))
    return document


def test_every_point_of_version_5_plans_for_the_length_that_lime_was_told() -> None:
    answer = read_experiment(recorded(), "the experiment")
    assert answer.problem == ""
    found = {}
    for point in expand(answer.needed(), Sources(topologies.load, topologies.preset)):
        assert point.spec is not None, point.problem
        found[point.coordinates["variant"]] = (point.spec.params, point.spec.workload.assumed_tokens)
    assert found == RUNS_OF_VERSION_5


def test_an_exported_experiment_of_version_5_is_read_from_its_file() -> None:
    assert parse_json(RECORDED.read_text(encoding="utf-8"), "x") == read_experiment(recorded(), "x").value


@pytest.mark.parametrize(
    ("paths", "level", "expected_paths", "expected"),
    [
        (["params.assumed_tokens"], {"value": 7}, ["workload.assumed_tokens"], {"value": 7, "set": {}}),
        (
            ["params"],
            {"label": "x", "value": {"assumed_tokens": 7, "mode": "dp"}},
            ["params"],
            {"label": "x", "value": {"mode": "dp"}, "set": {"workload.assumed_tokens": 7}},
        ),
        (
            [],
            {"label": "x", "set": {"strategy": "gpipe", "params": {}}},
            [],
            {"label": "x", "value": None, "set": {"strategy": "gpipe", "params": {}}},
        ),
    ],
)
def test_a_factor_gives_the_length_to_the_workload_where_it_gave_it_to_lime(
    paths: list[str], level: dict[str, Any], expected_paths: list[str], expected: dict[str, Any]
) -> None:
    old = {"schema": 5, "base": {}, "factors": [{"name": "f", "paths": paths, "values": [level]}]}
    (factor,) = upgrade_experiment(old)["factors"]
    assert (factor["paths"], factor["values"]) == (expected_paths, [expected])


def test_edgeformers_caches_become_the_workloads_wherever_an_experiment_says_them() -> None:
    """Coordinates stay; Voltage has a parameter of the same name."""
    levels = [{"value": "kv"}, {"value": "recompute"}]
    others = [
        {"label": "plain", "set": {"params": {"t_max": 0.5}}},
        {"label": "voltage", "set": {"strategy": "voltage", "params": {"decode": "recompute"}}},
    ]
    factors = [
        {"name": "decode", "paths": ["params.decode"], "values": levels},
        {"name": "method", "paths": [], "values": others},
    ]
    base = {"strategy": "edgeformer", "params": {"decode": "recompute", "t_max": 0.7}}
    new = upgrade_experiment({"schema": 5, "base": base, "factors": factors})
    assert (new["base"]["params"], new["base"]["workload"]) == ({"t_max": 0.7}, {"kv_cache": False})
    decode, method = new["factors"]
    assert decode["paths"] == []
    assert decode["values"] == [
        {"value": value, "set": {"workload.kv_cache": value == "kv"}} for value in ("kv", "recompute")
    ]
    assert [level["set"]["params"] for level in method["values"]] == [{"t_max": 0.5}, {"decode": "recompute"}]
    assert all(level["set"]["workload.kv_cache"] for level in method["values"])


def test_a_present_experiment_stays_as_it_is() -> None:
    document = recorded() | {"schema": SCHEMA}
    assert upgrade_experiment(document) is document
