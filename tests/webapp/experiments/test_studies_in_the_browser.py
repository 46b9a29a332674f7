"""Studies over HTTP: an experiment is exported as one, and somebody else's becomes a design of one's own."""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

import topologies
from engine.experiments.studies.archive import read_archive, write_archive
from engine.experiments.studies.study import StudiedMethod, Study
from engine.strategies import registry
from tests.support.experiments import BASE, FIGURE, RATES, TABLE, created, refused, work
from tests.support.web import Browser, person
from webapp.base import budgets
from webapp.experiments import points
from webapp.experiments.design import studies
from webapp.experiments.models import Cell, Experiment

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("nobody_hears")]


def carried_out(browser: Browser) -> str:
    """The address of an experiment whose points are there."""
    address = f"/experiments/{created(browser, figures=[FIGURE], tables=[TABLE])['id']}"
    browser.post(f"{address}/predict")
    work()
    return address


POINTS = "experiments/two-by-two/points.json"
STUDY: list[tuple[bytes, dict[str, Any]]] = []
"""The one that all tests take, and its experiment's document: it takes seconds to make."""


@pytest.fixture
def study(alice: Browser) -> bytes:
    """An exported study, of which nothing else is stored here."""
    if not STUDY:
        file = alice.get(f"{carried_out(alice)}/export/zip")
        assert file.status_code == 200, file.content
        STUDY.append((file.content, Experiment.objects.get().document))
        Experiment.objects.all().delete()
    return STUDY[0][0]


def send(browser: Browser, data: bytes, name: str = "study.zip") -> Any:
    return browser.client.post(
        "/api/experiments/study",
        {"file": SimpleUploadedFile(name, data)},
        headers={"X-CSRFToken": browser.client.cookies["csrftoken"].value},
    )


def files_of(data: bytes) -> tuple[Study, dict[str, bytes]]:
    found: dict[str, bytes] = {}

    def take(name: str, block: bytes) -> None:
        found[name] = found.get(name, b"") + block

    return read_archive(io.BytesIO(data), "study.zip", take), found


def test_an_experiment_is_exported_with_runs_results_figures_and_clusters(study: bytes) -> None:
    about, files = files_of(study)
    (one,) = about.experiments
    assert (one.name, one.points, one.results, one.worlds) == ("two-by-two", 4, 4, ("predicted",))
    assert len(files[f"{one.folder}/runs.jsonl"].splitlines()) == 4
    assert f"{one.folder}/figures/latency.pdf" in files and f"{one.folder}/tables/table.tex" in files
    assert topologies.parse_toml(files["clusters/lab-3.toml"].decode(), "") == topologies.load("lab-3")
    assert about.environment["processor"]


def test_the_source_of_a_method_of_others_is_in_a_study_that_an_operator_asks_it_for(
    alice: Browser, site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    origin = registry.origin_of("thirds")
    assert origin is not None
    monkeypatch.setattr(points, "installed_code", lambda: (origin.code,))
    made = created(alice, base=BASE | {"strategy": "thirds"}, factors=[RATES])
    address = f"/experiments/{made['id']}"
    alice.post(f"{address}/predict")
    work()
    (bare,), _ = methods_and_files(alice.get(f"{address}/export/zip"))
    assert (bare.name, bare.source) == ("thirds", "")
    (method,), files = methods_and_files(alice.get(f"{address}/export/zip?sources=true"))
    assert method.source == f"methods/{method.origin.package}"
    assert any(b"class " in content for name, content in files.items() if name.startswith(method.source))
    assert f"{method.source}/pyproject.toml" in files
    person("victor", "viewer")
    victor = Browser()
    victor.log_in("victor")
    assert "ask an administrator" in refused(victor.get(f"{address}/export/zip?sources=true"), 403)
    assert victor.get(f"{address}/export/zip").status_code == 200


def methods_and_files(answer: Any) -> tuple[tuple[StudiedMethod, ...], dict[str, bytes]]:
    assert answer.status_code == 200, answer.content
    study, files = files_of(answer.content)
    return study.methods, files


def test_one_that_was_not_started_is_refused(alice: Browser) -> None:
    answer = alice.get(f"/experiments/{created(alice)['id']}/export/zip")
    assert "carry it out first" in refused(answer, 422)


def test_an_imported_study_is_a_design_of_ones_own_of_which_nothing_counts_as_computed(study: bytes) -> None:
    person("bob", "operator")
    bob = Browser()
    assert bob.log_in("bob").status_code == 200
    answer = send(bob, study)
    assert answer.status_code == 201, answer.content
    (stored,) = answer.json()["experiments"]
    assert (stored["owner"], stored["state"], stored["total"]) == ("bob", "new", 0)
    assert Experiment.objects.get(pk=stored["id"]).document == STUDY[0][1]
    assert answer.json()["told"] == "two-by-two: every run of the study can be carried out here as it was."


def imported(browser: Browser, data: bytes) -> str:
    """The address of the experiment that a study becomes."""
    answer = send(browser, data)
    assert answer.status_code == 201, answer.content
    return f"/experiments/{answer.json()['experiments'][0]['id']}"


def with_results(data: bytes, change: Callable[[list[dict[str, Any]]], None]) -> bytes:
    """The study with other results, as another machine might have had them."""
    _, files = files_of(data)
    points = json.loads(files[POINTS])
    change(points["rows"])
    return resealed(files, {POINTS: json.dumps(points).encode()})


def test_the_results_of_a_study_are_shown_as_others_and_beside_ours_once_it_is_repeated(
    alice: Browser, victor: Browser, study: bytes
) -> None:
    def slower(rows: list[dict[str, Any]]) -> None:
        rows[0]["metrics"]["latency_s"] = 7.0

    address = imported(alice, with_results(study, slower))
    origin = alice.get(address).json()["study"]
    about, _ = files_of(study)
    assert (origin["file"], origin["packed_on"], origin["version"]) == ("study.zip", about.packed_on, 1)
    assert origin["environment"] == about.environment
    before = alice.get(f"{address}/study").json()
    assert (before["told"], before["may_repeat"]) == ([], True)
    assert before["lines"][0]["theirs"]["metrics"]["latency_s"] == 7.0
    assert [(line["ours"], line["verdict"]) for line in before["lines"]] == [(None, "not repeated")] * 4
    assert refused(victor.post(f"{address}/repeat"), 403)

    assert alice.post(f"{address}/repeat").status_code == 202
    work()
    after = alice.get(f"{address}/study").json()
    assert [line["verdict"] for line in after["lines"]] == ["differs", "same", "same", "same"]
    assert after["told"] == ["3 of 4 are the same: 3 of 4 predicted points exactly.", "1 differ."]
    first, second = after["lines"][:2]
    assert (first["metric"], first["study"]) == ("latency_s", "7 s")
    assert first["ours"]["metrics"]["latency_s"] < 1
    assert second["ours"] == second["theirs"]
    assert after["may_repeat"] is False


def test_a_point_that_is_another_run_here_is_not_compared(alice: Browser, study: bytes) -> None:
    address = imported(alice, with_results(study, lambda rows: rows[0].update(digest="0" * 64)))
    alice.post(f"{address}/repeat")
    work()
    lines = alice.get(f"{address}/study").json()["lines"]
    assert [line["verdict"] for line in lines] == ["not repeated", "same", "same", "same"]
    assert lines[0]["ours"] is None


def test_what_a_study_has_emulated_is_repeated_in_the_same_world(alice: Browser, study: bytes) -> None:
    address = imported(alice, with_results(study, lambda rows: rows.append(rows[1] | {"world": "emulated"})))
    alice.post(f"{address}/predict")
    work()
    assert alice.get(f"{address}/study").json()["may_repeat"]
    alice.post(f"{address}/repeat")
    cells = Cell.objects.filter(world="emulated")
    theirs = alice.get(f"{address}/study").json()
    assert [cell.coordinates for cell in cells] == [theirs["lines"][4]["coordinates"]]
    assert not theirs["may_repeat"]


def test_results_of_a_study_stay_with_the_points_that_were_imported(alice: Browser, study: bytes) -> None:
    address = imported(alice, study)
    document = alice.get(address).json()["experiment"]
    renamed = document | {"title": "Two by two"}
    assert alice.put(address, {"experiment": renamed, "version": 1}).json()["study"]["version"] == 2
    fewer = renamed | {"factors": document["factors"][:1]}
    assert alice.put(address, {"experiment": fewer, "version": 2}).json()["study"]["version"] == 2
    assert "import the study again" in refused(alice.post(f"{address}/repeat"), 409)
    shown = alice.get(f"{address}/study").json()
    assert len(shown["lines"]) == 4 and not shown["may_repeat"]
    assert alice.get(f"/experiments/{created(alice)['id']}/study").status_code == 404


def test_results_of_studies_have_a_limit(
    alice: Browser, study: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    many = with_results(study, lambda rows: rows.extend(rows[:1] * 2000))
    assert "2,004 results of one experiment" in refused(send(alice, many), 422)
    monkeypatch.setattr(budgets, "MAX_STUDY_RESULTS_CHARS", 1000)
    assert "characters stored" in refused(send(alice, study), 422)
    assert not Experiment.objects.exists()


def test_a_cluster_that_is_another_one_here_is_written_out(
    alice: Browser, study: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(studies, "cluster", lambda name: topologies.load("lab-4"))
    answer = send(alice, study).json()
    (stored,) = answer["experiments"]
    base = stored["experiment"]["base"]
    assert [device["name"] for device in base["cluster"]["devices"]] == [
        device.name for device in topologies.load("lab-3").devices
    ]
    assert "every run of the study" in answer["told"]


def test_runs_that_are_others_here_are_counted(alice: Browser, study: bytes) -> None:
    answer = send(alice, with_results(study, lambda rows: rows[0].update(digest="0" * 64)))
    assert "3 of the 4 runs of the study are the same here" in answer.json()["told"]


def resealed(files: dict[str, bytes], changed: dict[str, bytes]) -> bytes:
    """The archive of somebody who writes digests that fit."""
    manifest = json.loads(files["study.json"])
    for name, content in changed.items():
        manifest["files"][name] = {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    made = io.BytesIO()
    write_archive({**files, **changed, "study.json": json.dumps(manifest).encode()}, made)
    return made.getvalue()


@pytest.mark.parametrize(
    ("content", "sentence"),
    [(b"[" * 100_000, "no valid JSON"), (b"{}", "expected an object with an experiment"), (b"\xff", "JSON")],
)
def test_results_that_are_none_are_refused(
    alice: Browser, study: bytes, content: bytes, sentence: str
) -> None:
    _, files = files_of(study)
    answer = send(alice, resealed(files, {POINTS: content}))
    assert sentence in refused(answer, 422)
    assert not Experiment.objects.exists()


def test_hostile_and_large_archives_are_refused_and_nothing_is_stored(
    alice: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("../../settings.py", "x")
    assert "which no study has" in refused(send(alice, made.getvalue()), 422)
    assert "no ZIP file" in refused(send(alice, b"x" * 1000), 422)
    bomb = io.BytesIO()
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("bomb", "x")
        archive.getinfo("bomb").file_size = 501_000_000
    assert "unpacks to 501 MB" in refused(send(alice, bomb.getvalue()), 422)
    monkeypatch.setattr(budgets, "MAX_STUDY_BYTES", 10)
    assert "is larger than 10 B" in refused(send(alice, b"x" * 11), 422)
    assert not Experiment.objects.exists()


def test_who_may_only_look_imports_nothing_and_exports(alice: Browser, victor: Browser, study: bytes) -> None:
    assert send(victor, study).status_code == 403
    assert victor.get(f"{carried_out(alice)}/export/zip").status_code == 200
