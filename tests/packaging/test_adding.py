"""docs/guides/adding.md, followed word for word in a copy of the project: what it adds passes the tests.

A step names a file; the block below it is written there. Lines of a `sh` block are run. `./loom test …`
becomes pytest with the same arguments: the set-up before it has nothing to do with what was added.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
FOLLOWED = pytest.mark.long("docs/guides", "engine", "topologies", "tests/contract", "tests/support")
GUIDE = ROOT / "docs" / "guides" / "adding.md"
STEP = re.compile(r"(?P<where>[^\n]+(?:\n   [^\n]+)*):\n\n```(?P<kind>\w+)\n(?P<block>.*?)```", re.DOTALL)
CREATE = re.compile(r"Create `(?P<file>[^`]+)`$")
END = re.compile(r"at the end of\s+`(?P<file>[^`]+)`$")
LINE = re.compile(r"In `(?P<file>[^`]+)`, (?P<place>below|above|instead of) the line `(?P<line>[^`]+)`$")


class Step(NamedTuple):
    where: str
    kind: str
    block: str


def chapter(title: str) -> str:
    """The part of the guide under a heading."""
    _, found, rest = GUIDE.read_text(encoding="utf-8").partition(f"\n## {title}\n")
    assert found
    return rest.partition("\n## ")[0]


def steps(title: str) -> Iterator[Step]:
    for match in STEP.finditer(chapter(title)):
        yield Step(match["where"], match["kind"], match["block"])


def write(step: Step, checkout: Path) -> None:
    """Do what the step says. Fails if it says nothing that is understood here."""
    if found := CREATE.search(step.where):
        assert not (checkout / found["file"]).exists()
        (checkout / found["file"]).write_text(step.block, encoding="utf-8")
    elif found := END.search(step.where):
        with (checkout / found["file"]).open("a", encoding="utf-8") as file:
            file.write(step.block)
    elif found := LINE.search(step.where):
        text = (checkout / found["file"]).read_text(encoding="utf-8")
        line = found["line"] + "\n"
        assert text.count(line) == 1, f"{found['file']} has {text.count(line)} lines {found['line']!r}"
        new = {"below": line + step.block, "above": step.block + "\n" + line, "instead of": step.block}
        (checkout / found["file"]).write_text(text.replace(line, new[found["place"]]), encoding="utf-8")
    else:
        pytest.fail(f"this step names no place to write to: {step.where}")


def run(line: str, checkout: Path) -> str:
    """Run a line of a `sh` block with this test's Python; its output."""
    words = shlex.split(line)
    assert words[0] in ("./loom", ".venv/bin/python")
    tests = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *words[2:]]
    scripts = [sys.executable, *(words if words[0] == "./loom" else words[1:])]
    command = tests if words[:2] == ["./loom", "test"] else scripts
    inherited = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST_")}
    done = subprocess.run(
        command,
        cwd=checkout,
        env={**inherited, "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{line}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    return done.stdout


def follow(title: str, checkout: Path) -> dict[str, str]:
    """All steps of a chapter; the output of every line that was run."""
    outputs = {}
    for step in steps(title):
        if step.kind == "sh":
            outputs |= {line: run(line, checkout) for line in step.block.splitlines()}
        else:
            write(step, checkout)
    return outputs


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A copy of the files that git lists, with this checkout's libraries."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=ROOT,
        capture_output=True,
        check=True,
    ).stdout
    for name in filter(None, listed.decode().split("\0")):
        if (ROOT / name).is_file():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_bytes((ROOT / name).read_bytes())
    (tmp_path / "loom").chmod(0o755)
    for libraries in (".venv", "webapp/frontend/node_modules"):
        (tmp_path / libraries).symlink_to((ROOT / libraries).resolve())
    return tmp_path


def listed(what: str, checkout: Path) -> list[str]:
    return [row["name"] for row in json.loads(run(f"./loom list {what} --json", checkout))]


def number_of_passed(outputs: dict[str, str]) -> int:
    """How many tests the guide's `./loom test` ran."""
    (output,) = (output for line, output in outputs.items() if line.startswith("./loom test"))
    found = re.search(r"(\d+) passed", output)
    assert found, output
    return int(found[1])


@FOLLOWED
def test_a_strategy_is_added_as_the_guide_says(checkout: Path) -> None:
    outputs = follow("A strategy", checkout)
    assert "halves" in listed("strategies", checkout)
    assert "`halves`" in (checkout / "docs/reference/strategies.md").read_text(encoding="utf-8")
    assert number_of_passed(outputs) > 10


@FOLLOWED
def test_a_model_family_is_added_as_the_guide_says(checkout: Path) -> None:
    outputs = follow("A model family", checkout)
    assert "tiny-mistral" in listed("models", checkout)
    assert "`mistral`" in (checkout / "docs/reference/catalogue.md").read_text(encoding="utf-8")
    assert number_of_passed(outputs) > 15


@FOLLOWED
def test_a_device_is_added_as_the_guide_says(checkout: Path) -> None:
    follow("A device", checkout)
    assert "rock-5b" in listed("devices", checkout)
    tables = (checkout / "docs/results/boards").glob("*.csv")
    assert any("Radxa" in table.read_text(encoding="utf-8") for table in tables)
    (checkout / "mine.toml").write_text(
        'name = "mine"\nsource = "a"\n[[device]]\nname = "a"\npreset = "rock-5b"\n', encoding="utf-8"
    )
    run(
        "./loom predict mine.toml --model demo-lm --strategy single --prompt-tokens 4 --new-tokens 1",
        checkout,
    )


@FOLLOWED
def test_a_figure_is_added_as_the_guide_says_and_stands_on_every_surface(checkout: Path) -> None:
    outputs = follow("A figure of the report", checkout)
    assert "`energy_per_request_j`" in (checkout / "docs/reference/metrics.md").read_text(encoding="utf-8")
    (predicted,) = (output for line, output in outputs.items() if line.startswith("./loom predict"))
    assert "energy per request" in predicted
    surfaces = python(SURFACES, checkout)
    assert json.loads(surfaces) == dict.fromkeys(("csv", "compare", "experiment", "list", "browser"), True)


SURFACES = """
import json, os
os.environ["DJANGO_SETTINGS_MODULE"] = "webapp.settings"
import django
django.setup()
from engine.domain.experiment import Experiment
from engine.experiments.results.metrics import metrics_of
from engine.reports.compare import compare
from engine.reports.metrics import listed_figures
from engine.runs.predict import predict
from tests.support.web import run_spec
from webapp.clusters.catalogue import list_metrics
from webapp.runs.exports import report_csv

NAME = "energy_per_request_j"
report = predict(run_spec())
value = report.energy_j  # of one request
print(json.dumps({
    "csv": f"run,,{NAME},{value}" in report_csv(report).splitlines(),
    "compare": {row.name: row.values for row in compare([report, report]).metrics}[NAME] == (value, value),
    "experiment": metrics_of(report)[NAME] == value,
    "list": listed_figures(report)[NAME] == value,
    "browser": [one.title for one in list_metrics(None) if one.name == NAME] == ["Energy per request"],
}))
"""


def python(code: str, checkout: Path) -> str:
    """What this code prints in the copy."""
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=checkout, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def test_every_block_of_the_guide_is_a_step_that_is_followed() -> None:
    text = GUIDE.read_text(encoding="utf-8")
    blocks = len(re.findall(r"^```\w", text, re.MULTILINE))
    titles = ("A strategy", "A model family", "A device", "A figure of the report")
    assert sum(len(list(steps(title))) for title in titles) == blocks
