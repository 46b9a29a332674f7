"""Pages about methods of one's own, carried out, and examples that use only the public package."""

from __future__ import annotations

import ast
import csv
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.devtools.imports import imported_modules
from tests.devtools.rooms import ROOT

GUIDE = ROOT / "docs" / "guides" / "own-method.md"
TO_A_FIGURE = GUIDE.with_name("paper-to-figure.md")
EXAMPLES = sorted(path for path in (ROOT / "docs" / "examples").iterdir() if path.is_dir())
BLOCK = re.compile(r"(?:Create `(?P<file>[^`]+)`:\n\n)?```(?P<kind>\w+)\n(?P<text>.*?)```", re.DOTALL)
PUBLIC = {"edgeloom", "pydantic", "pytest"}
FOLLOWED = pytest.mark.long("docs/guides", "docs/examples", "edgeloom", "engine/strategies", "engine/program")
COMMAND = "import sys; from edgeloom.command_line import main; sys.exit(main())"


def carry_out(words: list[str], folder: Path) -> str:
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join((str(folder), str(ROOT))),
        "OMP_NUM_THREADS": "1",
    }
    done = subprocess.run(
        [sys.executable, *words], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{words}\n{done.stdout[-2000:]}\n{done.stderr[-3000:]}"
    return done.stdout


def carry_out_page(page: Path, folder: Path) -> None:
    """All its blocks in order: files that are created, Python and commands."""
    for block in BLOCK.finditer(page.read_text(encoding="utf-8")):
        text = block["text"]
        if block["file"]:
            (folder / block["file"]).write_text(text, encoding="utf-8")
        elif block["kind"] == "python":
            carry_out(["-c", text], folder)
        elif block["kind"] == "sh":
            for line in text.splitlines():
                words = shlex.split(line)
                assert words[0] == "edgeloom"
                carry_out(["-c", COMMAND, *words[1:]], folder)


@FOLLOWED
def test_the_guide_is_carried_out_as_it_stands(tmp_path: Path) -> None:
    carry_out_page(GUIDE, tmp_path)
    assert (tmp_path / "my-idea" / "my_idea.py").is_file()
    declared = (tmp_path / "my-idea" / "pyproject.toml").read_text(encoding="utf-8")
    assert 'my-idea = "my_idea:MyIdea"' in declared and 'my-idea = "my_idea:MyIdea"' in GUIDE.read_text()


@FOLLOWED
def test_a_paper_becomes_the_figure_of_its_page(tmp_path: Path) -> None:
    """The words below the figure: over a fast link it is faster than either machine, over a slow one slower,
    and the first token waits for no link.
    """
    carry_out_page(TO_A_FIGURE, tmp_path)
    assert (tmp_path / "splitwise.svg").is_file()
    with (tmp_path / "splitwise.csv").open(encoding="utf-8") as lines:
        rows = {(row["way"], float(row["gbit_per_s"])): row for row in csv.DictReader(lines)}
    alone_s = [float(rows[way, 1]["latency_s"]) for way in ("spark alone", "mac alone")]
    assert float(rows["split", 10]["latency_s"]) < min(alone_s)
    assert float(rows["split", 0.3]["latency_s"]) > max(alone_s)
    assert float(rows["split", 0.3]["ttft_s"]) == pytest.approx(float(rows["split", 40]["ttft_s"]))


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_an_example_imports_nothing_of_edgeloom_but_the_public_package(example: Path) -> None:
    own = {path.stem for path in example.glob("*.py")}
    for path in example.glob("*.py"):
        tops = {module.partition(".")[0] for module in imported_modules(path, example)}
        foreign = tops - own - PUBLIC - set(sys.stdlib_module_names) - {"__future__"}
        assert foreign == set(), f"{path.name} imports {foreign}"
        assert ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))


@FOLLOWED
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_the_tests_of_an_example_pass(example: Path) -> None:
    said = carry_out(["-m", "pytest", "-q", "-p", "no:cacheprovider", str(example)], example)
    assert re.search(r"\d+ passed", said)
