"""What is refused when a study is opened, and what an opened one gives back."""

from __future__ import annotations

import io
import json
import stat
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from engine.domain.errors import HostError, SpecError
from engine.experiments.studies.archive import Limits, read_archive, unpack
from engine.experiments.studies.reading import checked_study, read_experiment
from engine.experiments.studies.study import MANIFEST
from tests.support.packed_study import Files, archive_of, carried, packed, read


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
