"""Recorded files and clusters that an experiment names, written out for a machine without them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import topologies
from engine.domain.errors import SpecError
from engine.domain.experiment import Experiment
from engine.experiments.design.expand import Point, expand
from engine.experiments.design.files import dump_toml, parse_toml
from engine.experiments.design.sources import Sources
from engine.experiments.design.written_out import with_clusters, with_recorded, with_texts
from engine.recorded.prompts import read_prompts
from engine.recorded.requests import read_requests
from engine.recorded.scenarios import read_scenario
from tests.support.experiment_rows import experiment_of
from tests.support.packed_study import carried
from topologies.traces import scenario_of

NOWHERE = Sources(lambda name: pytest.fail(f"looked up {name}"), topologies.preset)

TEXTS = {
    "bus.up": "500\n1000\n1000\n",
    "day.csv": "TIMESTAMP,ContextTokens,GeneratedTokens\n"
    "2023-11-16 18:15:46.5,9,2\n2023-11-16 18:15:48,5,3\n",
    "ask.jsonl": '{"prompt": "Hi", "new_tokens": 3, "at_s": 2}\n{"prompt": "Hello", "at_s": 1}\n',
}
TOML = """
name = "recorded"
[base]
cluster = "lab-3"
model = "tiny-gpt2"
weights = "random"
strategy = "megatron"
scenario = "FOLDER/bus.up@desk--switch,until_s=2 + FOLDER/bus.up@shelf--switch,until_s=1"
[base.workload]
trace = "FOLDER/day.csv,requests=1"

[[factor]]
name = "load"
path = "workload"
values = [
    {label = "azure", value = {trace = "FOLDER/day.csv,stretch=2"}},
    {label = "prompts", value = {prompts = "FOLDER/ask.jsonl"}},
]

[[factor]]
name = "network"
path = "scenario"
values = ["none", "walk@desk--switch", {label = "bus", value = "FOLDER/bus.up@desk--switch"}]
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in TEXTS.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def experiment(folder: Path) -> Experiment:
    cluster = topologies.load("lab-3")
    ends = [f"{link.a}--{link.b}" for link in cluster.links[:2]]
    text = TOML.replace("FOLDER", str(folder))
    return parse_toml(text.replace("desk--switch", ends[0]).replace("shelf--switch", ends[1]), "x")


def sources(**own: Any) -> Sources:
    return Sources(topologies.load, topologies.preset, scenario=scenario_of)._replace(**own)


def reading() -> Sources:
    return sources(
        scenario=lambda name: read_scenario(name) if "bus" in name else scenario_of(name),
        requests=lambda name: read_requests(name).requests,
        prompts=read_prompts,
    )


def digests(points: tuple[Point, ...]) -> list[str]:
    assert all(point.spec for point in points), [point.problem for point in points]
    return [point.digest for point in points]


def test_the_runs_of_an_experiment_are_the_same_with_its_recorded_files_written_out(folder: Path) -> None:
    asked = experiment(folder)
    points = expand(asked, reading())
    assert len(points) == 6 and len(set(digests(points))) == 6
    for found in (with_recorded(asked, reading()), with_texts(asked, TEXTS)):
        assert str(folder) not in dump_toml(found).replace(f'value = "{folder}/bus.up@', "")
        again = parse_toml(dump_toml(found), "x")
        assert digests(expand(again, sources())) == digests(points)
        assert [level.coordinate for level in again.factors[1].values] == [
            level.coordinate for level in asked.factors[1].values
        ]


def test_what_the_files_say_is_in_the_runs(folder: Path) -> None:
    azure, *_, prompts = (point.spec for point in expand(experiment(folder), reading()))
    assert azure is not None and prompts is not None
    rows = [(row.at_s, row.prompt_tokens, row.new_tokens) for row in azure.workload.trace]
    assert rows == [(0.0, 9, 2), (3.0, 5, 3)] and not azure.scenario.changes
    assert [(row.at_s, row.new_tokens) for row in prompts.workload.trace] == [(1.0, 16), (2.0, 3)]
    assert [(change.at_s, change.bit_per_s) for change in prompts.scenario.changes] == [
        (0.0, 24e3),
        (0.5, 48e3),
    ]


@pytest.mark.parametrize("missing", TEXTS)
def test_a_file_that_is_not_given_is_named(folder: Path, missing: str) -> None:
    given = {name: text for name, text in TEXTS.items() if name != missing}
    with pytest.raises(SpecError, match=f"names the recorded file {missing}: give it together with"):
        with_texts(experiment(folder), given)


def test_listed_prompts_are_checked_one_by_one(folder: Path) -> None:
    listed = {"prompts": [{"prompt": "Hi"}, {"prompt": ""}]}
    asked = experiment(folder).model_copy(update={"factors": ()})
    asked = asked.model_copy(update={"base": asked.base | {"workload": listed}})
    with pytest.raises(SpecError, match=r"workload.prompts\[1\], prompt"):
        expand(asked, reading())


def test_clusters_are_written_out_and_coordinates_stay() -> None:
    experiment = experiment_of(
        {"name": "where", "path": "cluster", "values": ["lab-3", {"value": "lab-4", "label": "Four"}]},
        {
            "name": "how",
            "values": [{"label": "a", "set": {"cluster.devices[*].speed": 2, "strategy": "single"}}],
        },
        base={"cluster": "gigabit-4", "model": "demo-lm"},
    )
    clusters = {name: topologies.load(name) for name in ("gigabit-4", "lab-3")}
    found = with_clusters(experiment, clusters)
    where = found.factors[0]
    assert [(level.coordinate, level.label) for level in where.values] == [("lab-3", ""), ("lab-4", "Four")]
    assert found.base["cluster"]["name"] == "gigabit-4"
    assert where.values[0].set["cluster"]["name"] == "lab-3" and not where.values[1].set
    assert found.factors[1] == experiment.factors[1]


def test_the_runs_of_an_experiment_with_its_clusters_written_out_are_the_same() -> None:
    experiment = carried().experiment
    found = expand(with_clusters(experiment, {"lab-3": topologies.load("lab-3")}), NOWHERE)
    assert [point.digest for point in found] == [point.digest for point in carried().points]
