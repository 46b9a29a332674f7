"""Studies: what goes into an archive, what is refused when one is opened, and when a cell differs."""

from __future__ import annotations

import io
import json
import shutil
import stat
import zipfile
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

import topologies
from engine.domain.errors import HostError, SpecError
from engine.domain.experiment import Experiment
from engine.domain.spec import WeightsRef, spec_digest
from engine.experiments.design.expand import expand
from engine.experiments.design.sources import Sources
from engine.experiments.design.written_out import with_clusters, with_recorded
from engine.experiments.execution.point import carry_out
from engine.experiments.results.rows import Row, failure, rows
from engine.experiments.results.versions import Versions
from engine.experiments.studies.archive import Limits, read_archive, unpack, write_archive
from engine.experiments.studies.contents import (
    About,
    Carried,
    Clusters,
    cluster_files,
    cluster_names,
    contents_of,
)
from engine.experiments.studies.environment import environment
from engine.experiments.studies.here import runs_here
from engine.experiments.studies.private import own_paths, without_folders, without_own_paths, without_places
from engine.experiments.studies.reading import checked_study, read_experiment
from engine.experiments.studies.repeat import compared
from engine.experiments.studies.study import MANIFEST
from engine.recorded.scenarios import read_scenario
from tests.support.experiment_rows import experiment_of, rows_of

NOWHERE = Sources(lambda name: pytest.fail(f"looked up {name}"), topologies.preset)
CLUSTERS = Clusters(topologies.load, topologies.dump_toml)
ABOUT = About("2026-11-20", {"edgeloom": "1.2.3", "kernel": "6.1"}, licence="https://example.org/licence")
Files = dict[str, bytes]


@cache
def carried() -> Carried:
    experiment = Experiment.parse(
        {
            "name": "two",
            "title": "Two methods",
            "base": {
                "cluster": "lab-3",
                "model": "demo-lm",
                "workload": {"prompt_tokens": 4, "new_tokens": 2},
            },
            "factors": [{"name": "method", "path": "strategy", "values": ["single", "megatron"]}],
            "tables": [{"name": "times", "rows": ["method"]}],
            "figures": [{"name": "times", "kind": "bars", "x": "method"}],
        },
        "two",
    )
    points = expand(experiment, Sources(topologies.load, topologies.preset))
    results = {
        (one.digest, "predicted"): carry_out(one.spec, one.digest, "predicted") for one in points if one.spec
    }
    return Carried(experiment, points, rows(points, ("predicted",), results, Versions()))


@cache
def packed() -> Files:
    return contents_of([carried()], ABOUT, CLUSTERS)[1]


def archive_of(files: Files) -> io.BytesIO:
    made = io.BytesIO()
    write_archive(files, made)
    return made


def read(archive: io.BytesIO, limits: Limits = Limits()) -> Files:  # noqa: B008
    found: Files = {}

    def take(name: str, block: bytes) -> None:
        found[name] = found.get(name, b"") + block

    read_archive(archive, "study.zip", take, limits)
    return found


# Packing -------------------------------------------------------------------------------------------
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


# Opening -------------------------------------------------------------------------------------------
def entry(name: str, mode: int = stat.S_IFREG) -> zipfile.ZipInfo:
    made = zipfile.ZipInfo(name)
    made.external_attr = (mode | 0o644) << 16
    made.compress_type = zipfile.ZIP_DEFLATED
    return made


def with_entry(made: zipfile.ZipInfo, content: bytes = b"x") -> io.BytesIO:
    archive = archive_of(packed())
    with zipfile.ZipFile(archive, "a") as file:
        file.writestr(made, content)
    return archive


def changed(change: Callable[[Files], None]) -> io.BytesIO:
    files = dict(packed())
    change(files)
    return archive_of(files)


def of_version_2(files: Files) -> None:
    files[MANIFEST] = json.dumps({"version": 2}).encode()


def with_a_name_outside(files: Files) -> None:
    manifest = json.loads(files[MANIFEST])
    manifest["files"]["../outside"] = {"bytes": 1, "sha256": "0"}
    files[MANIFEST] = json.dumps(manifest).encode()


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize(
    ("archive", "sentence"),
    [
        (lambda: with_entry(entry("../outside")), "which no study has"),
        (lambda: with_entry(entry("/etc/passwd")), "which no study has"),
        (lambda: with_entry(entry("experiments/../../outside")), "which no study has"),
        (lambda: with_entry(entry("a\\..\\b")), "which no study has"),
        (lambda: with_entry(entry(".bashrc")), "which no study has"),
        (lambda: with_entry(entry("a" * 101)), "which no study has"),
        (lambda: with_entry(entry("link", stat.S_IFLNK), b"/etc/passwd"), "is a link"),
        (lambda: with_entry(entry("pipe", stat.S_IFIFO), b""), "is a link, a device"),
        (lambda: with_entry(entry(MANIFEST)), "two files called study.json"),
        (lambda: with_entry(entry("more.py")), "more.py is not in study.json"),
        (lambda: changed(lambda files: files.pop("clusters/lab-3.toml")), "clusters/lab-3.toml is missing"),
        (
            lambda: changed(lambda files: files.update({"clusters/lab-3.toml": b"x"})),
            "is not what study.json says",
        ),
        (lambda: changed(lambda files: files.pop(MANIFEST)), "is no study: it has no study.json"),
        (lambda: changed(lambda files: files.update({MANIFEST: b"{" * 100_000})), "no valid JSON"),
        (lambda: changed(lambda files: files.update({MANIFEST: b"[" * 100_000})), "no valid JSON"),
        (lambda: changed(lambda files: files.update({MANIFEST: b'{"more": 1}'})), "study.json"),
        (lambda: changed(of_version_2), "version 2, and this EdgeLoom reads version 1"),
        (lambda: changed(with_a_name_outside), "files"),
        (lambda: io.BytesIO(b"no archive"), "it is no ZIP file"),
        (lambda: io.BytesIO(archive_of(packed()).getvalue()[:-40]), "it is no ZIP file"),
    ],
)
def test_what_is_no_study_is_refused_in_a_sentence_and_leaves_nothing(
    archive: Callable[[], io.BytesIO], sentence: str, tmp_path: Path
) -> None:
    file = tmp_path / "study.zip"
    file.write_bytes(archive().getvalue())
    with pytest.raises(SpecError, match=sentence):
        unpack(file, tmp_path / "inside" / "study")
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["inside", "study.zip"]


def test_a_byte_that_was_flipped_on_the_way_is_found() -> None:
    archive = bytearray(archive_of(packed()).getvalue())
    archive[len(archive) // 3] ^= 1
    with pytest.raises(SpecError):
        read(io.BytesIO(bytes(archive)))


def test_an_archive_that_unpacks_to_too_much_or_too_many_is_refused_before_it_is_unpacked() -> None:
    bomb = with_entry(entry("bomb"), bytes(50_000_000))
    assert len(bomb.getvalue()) < 50_000_000
    with pytest.raises(SpecError, match="unpacks to 50"):
        read(bomb, Limits(bytes=10_000_000))
    with pytest.raises(SpecError, match="the limit is 5"):
        read(archive_of(packed()), Limits(files=5))
    with pytest.raises(SpecError, match=r"study.json has"):
        read(archive_of(packed()), Limits(manifest_bytes=10))


def test_an_entry_that_says_it_is_smaller_than_it_is_gives_no_more_than_it_says() -> None:
    """Sizes in the directory of an archive are what its maker wrote there."""
    archive = bytearray(with_entry(entry("bomb"), bytes(5_000_000)).getvalue())
    size = (5_000_000).to_bytes(4, "little")
    while size in archive:
        at = archive.index(size)
        archive[at : at + 4] = (10).to_bytes(4, "little")
    got: Files = {}
    with pytest.raises(SpecError):
        read_archive(io.BytesIO(bytes(archive)), "study.zip", got.__setitem__)
    assert sum(map(len, got.values())) < 1_000_000


def test_a_folder_with_something_in_it_is_not_written_into(tmp_path: Path) -> None:
    file = tmp_path / "study.zip"
    file.write_bytes(archive_of(packed()).getvalue())
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("x")
    with pytest.raises(SpecError, match="not empty"):
        unpack(file, tmp_path / "mine")
    with pytest.raises(HostError, match="No such file"):
        unpack(tmp_path / "nothing.zip", tmp_path / "new")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    file = tmp_path / "study.zip"
    file.write_bytes(archive_of(packed()).getvalue())
    unpack(file, tmp_path / "study")
    return tmp_path / "study"


def test_a_study_that_was_unpacked_gives_experiment_runs_and_rows_back(folder: Path) -> None:
    study = checked_study(folder)
    opened = read_experiment(folder, study, study.experiments[0])
    assert opened.experiment == carried().experiment
    assert opened.rows == tuple(row.model_copy(update={"stale": False}) for row in carried().rows)
    assert list(opened.runs) == [point.digest for point in carried().points]


def test_what_was_changed_in_the_folder_is_found_and_what_lies_beside_is_let_be(folder: Path) -> None:
    (folder / "notes.txt").write_text("what its owner wrote")
    assert checked_study(folder).experiments
    with (folder / "experiments/two/points.csv").open("a") as file:
        file.write("one more")
    with pytest.raises(SpecError, match=r"points\.csv: is not what"):
        checked_study(folder)
    (folder / "experiments/two/points.csv").unlink()
    with pytest.raises(HostError, match="cannot be read"):
        checked_study(folder)


def test_an_experiment_whose_results_the_study_does_not_list_is_not_read(folder: Path) -> None:
    study = checked_study(folder)
    files = {name: file for name, file in study.files.items() if not name.endswith("runs.jsonl")}
    with pytest.raises(SpecError, match=r"has no experiments/two/runs\.jsonl"):
        read_experiment(folder, study.model_copy(update={"files": files}), study.experiments[0])


# Repeating -----------------------------------------------------------------------------------------
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


# Elsewhere -----------------------------------------------------------------------------------------
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


def test_every_cluster_of_a_study_has_a_file_of_its_own_whatever_its_name():
    names = ("papers-x", "papers-x-3", "papers/x")
    assert len(set(cluster_files(names).values())) == len(names)
