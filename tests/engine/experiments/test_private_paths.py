"""Paths of folders, and with them names of people, are left out of a study."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import topologies
from engine.domain.errors import SpecError
from engine.domain.experiment import Experiment
from engine.domain.spec import WeightsRef, spec_digest
from engine.experiments.design.expand import expand
from engine.experiments.design.sources import Sources
from engine.experiments.design.written_out import with_recorded
from engine.experiments.results.rows import failure, rows
from engine.experiments.results.versions import Versions
from engine.experiments.studies.contents import About, Carried, contents_of
from engine.experiments.studies.environment import environment
from engine.experiments.studies.private import own_paths, without_folders, without_own_paths, without_places
from engine.experiments.studies.reading import read_experiment
from engine.recorded.scenarios import read_scenario
from tests.support.packed_study import ABOUT, CLUSTERS, carried

NOWHERE = Sources(lambda name: pytest.fail(f"looked up {name}"), topologies.preset)


def test_nothing_in_it_says_whose_machine_it_was(tmp_path: Path) -> None:
    home = tmp_path / "alice"
    home.mkdir()
    (point, _) = carried().points
    assert point.spec is not None
    place = WeightsRef(kind="directory", directory=str(home / "gpt"), digest="f" * 64)
    spec = point.spec.model_copy(update={"weights": place})
    error = SpecError(f"weights ({home}/model.safetensors, line 3) are none: see https://example.org/a/b.")
    digest = spec_digest(spec)
    failed = failure(error, digest, "predicted")
    result = {failed.key: failed.model_copy(update={"run": "17"})}
    experiment = carried().experiment.model_copy(
        update={"base": {**carried().experiment.base, "model": str(home)}}
    )
    its = point._replace(spec=spec, digest=digest)
    one = Carried(experiment, [its], rows([its], ["predicted"], result, Versions()))
    files = contents_of([one], About("2026-11-20", environment()), CLUSTERS)[1]
    assert not [name for name, content in files.items() if str(tmp_path).encode() in content]
    document = json.loads(files["experiments/two/points.json"])
    assert document["rows"][0]["sentence"].startswith("weights (model.safetensors, line 3)")
    assert "https://example.org/a/b" in document["rows"][0]["sentence"]
    assert document["experiment"]["base"]["model"] == "alice" and document["rows"][0]["run"] == ""


def test_a_recorded_file_that_a_level_names_with_link_and_options_loses_its_folder(tmp_path: Path) -> None:
    one, two = (f"{link.a}--{link.b}" for link in topologies.load("lab-3").links[:2])
    for home in ("alice", "bob"):
        (tmp_path / home).mkdir()
        (tmp_path / home / "bus.up").write_text("500\n1000\n1000\n")
    of_both = f"{tmp_path}/alice/bus.up@{one},until_s=2 + {tmp_path}/alice/bus.up@{two}"
    of_bob = of_both.replace("alice", "bob").replace("until_s=2", "until_s=1")
    same_name = of_both.replace("alice", "bob")
    document = carried().experiment.model_dump(mode="json") | {
        "factors": [{"name": "network", "path": "scenario", "values": [of_both, of_bob, same_name]}],
        "base": {**carried().experiment.base, "strategy": "single"},
        "where": [f"network != '{of_bob}'"],
        "tables": [{"name": "times", "rows": ["network"], "where": [f"network == '{same_name}'"]}],
        "figures": [],
    }
    reading = Sources(topologies.load, topologies.preset, scenario=read_scenario)
    experiment = with_recorded(Experiment.parse(document, "two"), reading)
    points = expand(experiment, reading)
    assert len(points) == 2
    digest = points[0].digest
    results = {(digest, "predicted"): failure(SpecError("too long"), digest, "predicted")}
    one_study = Carried(experiment, points, rows(points, ("predicted",), results, Versions()))
    study, files = contents_of([one_study], ABOUT, CLUSTERS)
    assert not [name for name, content in files.items() if str(tmp_path).encode() in content]
    for name, content in files.items():
        (tmp_path / "study" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "study" / name).write_bytes(content)
    opened = read_experiment(tmp_path / "study", study, study.experiments[0])
    short = f"bus.up@{one},until_s=2 + bus.up@{two}"
    assert [level.value for level in opened.experiment.factors[0].values][::2] == [short, f"{short} (2)"]
    assert [row.coordinates["network"] for row in opened.rows] == [short, f"{short} (2)"]
    again = expand(opened.experiment, NOWHERE._replace(cluster=topologies.load))
    assert [point.digest for point in again] == [point.digest for point in points]


def test_a_prompt_that_looks_like_a_path_stays_what_it_is(tmp_path: Path) -> None:
    said = {"prompt": "/usr/nowhere/at all", "rate": "10 bit/s", "file": str(tmp_path)}
    experiment = carried().experiment.model_copy(update={"base": said})
    names = own_paths(experiment)
    assert without_own_paths(said, names) == {**said, "file": tmp_path.name}
    assert without_folders("see a/b and 3/4 of bit/s") == "see a/b and 3/4 of bit/s"


def test_a_run_whose_weights_have_a_directory_and_no_digest_is_refused() -> None:
    spec = carried().points[0].spec
    assert spec is not None
    nameless = spec.model_copy(update={"weights": WeightsRef(kind="directory", directory="/somewhere")})
    with pytest.raises(SpecError, match="named by a directory alone"):
        without_places(nameless)
