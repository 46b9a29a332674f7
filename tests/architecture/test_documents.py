"""The generated parts of the documents are current, and every file that a document names exists."""

from __future__ import annotations

import csv
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from xml.etree import ElementTree

import pytest
import yaml

from tests.devtools.docs_command import NOTEBOOK, PICTURES
from tests.devtools.documents import outdated, replaced, table
from tests.devtools.rooms import ROOT, read_parts
from tests.devtools.rooms_picture import picture

DOCS = ROOT / "docs"
DOCUMENTS = sorted([*ROOT.glob("*.md"), *DOCS.rglob("*.md"), *(ROOT / "engine").rglob("README.md")])
SVG = "{http://www.w3.org/2000/svg}"
LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")
CODE = re.compile(r"`([^`\n]+)`")
ENDINGS = ("py", "toml", "md", "ts", "tsx", "json", "svg", "png", "csv", "yml", "yaml", "txt", "in")
PATH = re.compile(rf"(?:[A-Za-z_.][\w.-]*/)+(?:[\w.-]+\.(?:{'|'.join(ENDINGS)}))?")
PLACEHOLDERS = ("NAME", "halves", "seed_oss")
"""In the names of files that the reader is to create."""
GENERATED = (".loom/", ".venv/", "node_modules/", "dist/")
"""Folders that a checkout gets when it is set up."""


def test_generated_tables_and_pictures_are_current() -> None:
    assert outdated() == [], "run ./loom docs"


@pytest.mark.parametrize("module", [PICTURES, NOTEBOOK])
def test_what_takes_pictures_can_be_loaded_as_a_program(module: str) -> None:
    """It takes minutes, so no test carries it out; a fixture's import once broke it, unseen for days."""
    subprocess.run([sys.executable, "-c", f"import {module}"], cwd=ROOT, check=True)


def test_the_picture_shows_every_room_of_rooms_toml_and_one_arc_per_arrow() -> None:
    parts = read_parts()
    svg = ElementTree.fromstring(picture(parts))
    texts = {element.text for element in svg.iter(f"{SVG}text")}
    assert {room.name for part in parts for room in part.rooms} | {part.name for part in parts} <= texts
    arcs = [element for element in svg.iter(f"{SVG}path") if " C" in element.attrib["d"]]
    between_rooms = sum(len(room.imports) for part in parts for room in part.rooms)
    between_parts = sum(len(part.imports) + len(part.doors) for part in parts)
    assert len(arcs) == between_rooms + between_parts


def test_all_arrows_of_the_picture_point_down() -> None:
    for path in ElementTree.fromstring(picture(read_parts())).iter(f"{SVG}path"):
        if " C" in path.attrib["d"]:
            numbers = [float(number) for number in re.findall(r"-?[\d.]+", path.attrib["d"])]
            assert numbers[-1] > numbers[1]


def test_a_table_replaces_what_stands_between_its_markers() -> None:
    text = "before\n<!-- table t -->\nold\n<!-- end t -->\nafter\n"
    new = "before\n<!-- table t -->\n| a |\n| --- |\n| 1 |\n<!-- end t -->\nafter\n"
    assert replaced(text, "t", table(("a",), [("1",)]), "here") == new
    with pytest.raises(ValueError, match="here: expected the lines <!-- table u -->"):
        replaced(text, "u", "", "here")


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_every_file_that_a_document_names_exists(document: Path) -> None:
    text = re.sub(r"```.*?```", "", document.read_text(encoding="utf-8"), flags=re.DOTALL)
    named = {link for link in LINK.findall(text) if "://" not in link}
    missing = [link for link in named if not (document.parent / link).exists()]
    spoken = {path for code in CODE.findall(text) for path in [code.strip()] if PATH.fullmatch(path)}
    missing += [
        path
        for path in spoken
        if not path.startswith(GENERATED)
        and not any(word in path for word in PLACEHOLDERS)
        and not _exists(path, document.parent)
    ]
    assert not missing


def _exists(path: str, beside: Path) -> bool:
    """From the root of the checkout, or beside the document."""
    return (ROOT / path).exists() or (beside / path).exists()


def test_no_document_names_a_file_that_git_does_not_track() -> None:
    tracked = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False
    ).stdout
    if not tracked:
        pytest.skip("not a git checkout")
    files = set(tracked.splitlines())
    for document in DOCUMENTS:
        for link in LINK.findall(document.read_text(encoding="utf-8")):
            target = (document.parent / link).resolve()
            if "://" not in link and target.is_file():
                assert target.relative_to(ROOT).as_posix() in files, f"{document.name} links {link}"


def test_every_function_that_a_document_names_is_in_its_file() -> None:
    named = re.compile(r"`([\w./]+\.py)`,\s+function\s+`(\w+)`")
    found = [(*match, path.name) for path in DOCUMENTS for match in named.findall(path.read_text("utf-8"))]
    assert found
    assert not [row for row in found if f"def {row[1]}(" not in (ROOT / row[0]).read_text("utf-8")]


def test_the_newest_release_of_the_changelog_is_the_version_of_the_package() -> None:
    text = (ROOT / "CHANGELOG.md").read_text("utf-8")
    released = re.findall(r"^## \[(\d+\.\d+\.\d+)\] - \d{4}-\d\d-\d\d$", text, re.MULTILINE)
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"]
    assert released[0] == declared


def test_the_citation_is_of_this_release_by_its_authors_and_as_the_format_1_2_0_wants_it() -> None:
    """Its schema requires the first four keys, and of an author that is no person a name."""
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert {"cff-version", "message", "title", "authors"} <= citation.keys()
    optional = {"type", "abstract", "version", "date-released", "license", "keywords"}
    assert citation.keys() <= {"cff-version", "message", "title", "authors"} | optional
    assert citation["cff-version"] == "1.2.0" and citation["type"] == "software"
    for key in ("version", "license"):
        assert citation[key] == project[key]
    assert citation["authors"] == project["authors"] and all(
        set(one) == {"name"} for one in project["authors"]
    )
    assert citation["abstract"] == project["description"]
    changes = (ROOT / "CHANGELOG.md").read_text("utf-8")
    assert f"## [{project['version']}] - {citation['date-released']}" in changes


def test_no_document_publishes_what_it_calls_outdated_or_not_measured() -> None:
    excuses = re.compile(r"not measured (yet|on)|measured before .* (got|was|were)|outdated", re.IGNORECASE)
    found = [(path.name, excuses.findall(" ".join(path.read_text("utf-8").split()))) for path in DOCUMENTS]
    assert [name for name, excused in found if excused] == []


COMPARED_IN = ("results/reproductions", "results/boards")
"""Pages that have published figures beside ours, of papers and of boards; every other one refers to them."""


def test_published_figures_stand_beside_ours_in_one_page_only() -> None:
    """Two pages with a value each for one figure differ sooner or later."""
    tables = sorted(DOCS.rglob("*.csv"))
    assert tables
    found = {
        path
        for path in (*DOCUMENTS, *tables)
        if compares(path.read_text("utf-8") if path.suffix == ".md" else as_page(path))
    }
    places = {path: path.relative_to(ROOT).as_posix().removeprefix("docs/") for path in found}
    assert [place for place in places.values() if not place.startswith(COMPARED_IN)] == []
    assert all(any(place.startswith(page) for place in places.values()) for page in COMPARED_IN)
    assert compares("| figure | published | ours, 1 Gbit/s |\n| --- | ---: | ---: |\n| x | 1 | 2 |\n")


def as_page(table: Path) -> str:
    """The heads of a table beside a page, as they would stand in it."""
    heads = next(csv.reader(table.read_text("utf-8").splitlines()))
    return f"| {' | '.join(heads)} |\n|{' --- |' * len(heads)}\n"


def compares(text: str) -> bool:
    """Whether a table of the text has a column of published figures, and one of ours or predicted ones."""
    heads = re.findall(r"^\|(.*)\|\n\|[ :|-]+\|$", text, re.MULTILINE)
    ours = re.compile(r"\b(ours|predicted)\b")
    return any(re.search(r"\bpublished\b", head) and ours.search(head) for head in heads)
