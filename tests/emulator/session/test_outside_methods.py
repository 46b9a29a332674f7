"""Methods from outside in emulations, whose processes import them too: from a file, and from an installed
package.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from edgeloom.command_line import main
from tests.support.outside import THIRDS, edgeloom, install, keep_methods_apart, write_method

pytestmark = pytest.mark.root
RUN = (
    "run",
    "lab-3",
    "--model",
    "tiny-gpt2",
    "--weights",
    "random",
    "--prompt-tokens",
    "8",
    "--new-tokens",
    "4",
    "--dilation",
    "8",
)
"""The text of other emulations' tests, whose reference takes seconds and is kept."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Nobody else may look into it, as into a home directory."""
    (tmp_path / "home" / "site").mkdir(parents=True)
    (tmp_path / "home").chmod(0o700)
    return tmp_path / "home"


@pytest.fixture
def emulated(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """`emulated(strategy)`: the command in this process, whose earlier emulations have imported torch."""
    keep_methods_apart(monkeypatch)
    monkeypatch.chdir(folder)

    def run(strategy: str) -> None:
        monkeypatch.setattr(sys, "argv", ["edgeloom", *RUN, "--strategy", strategy, "--json", "report.json"])
        main()

    return run


def test_the_method_of_a_file_is_emulated(folder: Path, emulated: Callable[[str], None]) -> None:
    write_method(folder)
    emulated("./thirds.py:Thirds")
    report = json.loads((folder / "report.json").read_text())
    assert report["outcome"]["kind"] == "finished" and report["correctness"]["ok"]
    assert report["spec"]["method"]["file"] == str(folder / "thirds.py")


def test_the_method_of_an_installed_package_is_emulated(folder: Path) -> None:
    write_method(folder / "site")
    install(folder / "site")
    done = edgeloom(folder, *RUN, "--strategy", "thirds", "--json", "report.json", path=str(folder / "site"))
    assert (folder / "report.json").is_file(), done.stdout + done.stderr
    report = json.loads((folder / "report.json").read_text())
    assert report["outcome"]["kind"] == "finished" and report["correctness"]["ok"]
    assert report["spec"]["method"]["package"] == "two-thirds"


def test_what_its_program_raises_on_a_device_is_the_runs_outcome_with_its_line(
    folder: Path, emulated: Callable[[str], None]
) -> None:
    """Only on tensors, so that the prediction before it finds nothing."""
    raises = (
        "\n    async def forward_all(self, ctx, plan, steps, tokens, done):\n"
        "        if tokens[0] is not None and hasattr(tokens[0], 'numpy'):\n"
        "            raise KeyError('lost')\n"
        "        await super().forward_all(ctx, plan, steps, tokens, done)\n"
    )
    file = write_method(folder, THIRDS + raises)
    line = file.read_text().splitlines().index("            raise KeyError('lost')") + 1
    emulated("thirds.py")
    report = json.loads((folder / "report.json").read_text())
    assert report["outcome"]["kind"] == "failed"
    assert f"({file}, line {line})" in report["outcome"]["sentence"]
