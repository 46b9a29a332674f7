"""What goes into a study."""

from __future__ import annotations

import json

import pytest

import topologies
from engine.domain.errors import SpecError
from engine.experiments.studies.contents import cluster_files, cluster_names, contents_of
from engine.experiments.studies.study import MANIFEST
from tests.support.experiment_rows import experiment_of
from tests.support.packed_study import ABOUT, CLUSTERS, archive_of, carried, packed, read


def test_a_study_is_read_as_it_was_packed_and_packed_the_same_twice() -> None:
    archive = archive_of(packed())
    assert read(archive) == packed()
    again = contents_of([carried()], ABOUT, CLUSTERS)[1]
    same = {name for name in again if again[name] == packed()[name]}
    assert {name for name in again if name.endswith((".pdf", ".svg"))} | same == set(packed())


def test_it_has_runs_results_figures_clusters_and_says_what_they_are() -> None:
    files = packed()
    manifest = json.loads(files[MANIFEST])
    assert {f"experiments/two/{name}" for name in ("points.json", "figures/times.pdf", "runs.jsonl")} <= set(
        files
    )
    assert topologies.parse_toml(files["clusters/lab-3.toml"].decode(), "lab-3.toml") == topologies.load(
        "lab-3"
    )
    assert manifest["experiments"][0]["points"] == 2 and manifest["experiments"][0]["seeds"] == [0]
    assert [method["name"] for method in manifest["methods"]] == ["megatron", "single"]
    (model,) = manifest["models"]
    assert (model["name"], model["weights"], len(model["digest"])) == ("demo-lm", "directory", 64)
    assert manifest["files"].keys() == files.keys() - {MANIFEST}


def test_its_metadata_has_what_ro_crate_says_that_a_root_must_have() -> None:
    crate = json.loads(packed()["ro-crate-metadata.json"])
    graph = {entity["@id"]: entity for entity in crate["@graph"]}
    assert crate["@context"] == "https://w3id.org/ro/crate/1.2/context"
    about = graph["ro-crate-metadata.json"]
    assert about["conformsTo"] == {"@id": "https://w3id.org/ro/crate/1.2"} and about["about"] == {"@id": "./"}
    root = graph["./"]
    assert root["@type"] == "Dataset" and root["datePublished"] == "2026-11-20"
    assert root["name"] and root["description"] and root["license"] == {"@id": ABOUT.licence}
    parts = {part["@id"] for part in root["hasPart"]}
    assert parts == packed().keys() - {"ro-crate-metadata.json"} and parts <= graph.keys()
    without = contents_of([carried()], ABOUT._replace(licence=""), CLUSTERS)[1]
    (unlicensed,) = (
        one for one in json.loads(without["ro-crate-metadata.json"])["@graph"] if one["@id"] == "./"
    )
    assert isinstance(unlicensed["license"], str)


def test_an_experiment_without_results_and_two_of_one_name_are_refused() -> None:
    with pytest.raises(SpecError, match="carry it out first"):
        contents_of([carried()._replace(rows=())], ABOUT, CLUSTERS)
    with pytest.raises(SpecError, match="one name"):
        contents_of([carried(), carried()], ABOUT, CLUSTERS)


def test_points_without_a_result_are_left_out() -> None:
    study, _ = contents_of([carried()._replace(rows=carried().rows[:1])], ABOUT, CLUSTERS)
    assert study.experiments[0].points == study.experiments[0].results == 1


def test_clusters_are_found_in_the_base_in_levels_and_in_what_levels_set() -> None:
    experiment = experiment_of(
        {"name": "where", "path": "cluster", "values": ["lab-3", "lab-4"]},
        {"name": "how", "values": [{"label": "a", "set": {"cluster": "lab-5", "strategy": "single"}}]},
        base={"cluster": "gigabit-4"},
    )
    assert list(cluster_names(experiment)) == ["gigabit-4", "lab-3", "lab-4", "lab-5"]


def test_every_cluster_of_a_study_has_a_file_of_its_own_whatever_its_name():
    names = ("papers-x", "papers-x-3", "papers/x")
    assert len(set(cluster_files(names).values())) == len(names)
