"""The rooms and the arrows between them, read from the imports themselves."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROOMS = ("engine", "emulator", "topologies", "webapp")
MAY_IMPORT = {
    "engine": {"engine"},
    "emulator": {"emulator", "engine"},
    "topologies": {"topologies", "engine"},
    "webapp": {"webapp", "engine", "topologies"},
}
ALLOWED_CROSSINGS = {("webapp/runs/tasks.py", "emulator")}
FOREIGN_TO_THE_ENGINE = {"django", "channels", "celery", "redis", "mininet", "ninja"}
CEILING_LINES = 500
FORBIDDEN_FILES = {"utils.py", "helpers.py", "misc.py", "common.py"}


def source_files(room: str) -> list[Path]:
    return sorted(path for path in (ROOT / room).rglob("*.py") if "node_modules" not in path.parts)


def imported_modules(path: Path) -> Iterator[str]:
    """Full names of everything that a file imports, inside functions as well; relative ones resolved."""
    package = path.relative_to(ROOT).with_suffix("").parts[:-1]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"), str(path))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            module = ".".join((*base, *([node.module] if node.module else [])))
            yield module
            yield from (f"{module}.{alias.name}" for alias in node.names)


@pytest.mark.parametrize("room", ROOMS)
def test_arrows_between_rooms_point_one_way(room: str) -> None:
    wrong = []
    for path in source_files(room):
        name = path.relative_to(ROOT).as_posix()
        reached = {module.partition(".")[0] for module in imported_modules(path)} & set(ROOMS)
        wrong += [
            f"{name} imports {other}"
            for other in sorted(reached - MAY_IMPORT[room])
            if (name, other) not in ALLOWED_CROSSINGS
        ]
    assert not wrong


@pytest.mark.parametrize("room", ROOMS)
def test_every_room_has_code_that_this_test_reads(room: str) -> None:
    assert len(source_files(room)) > 2


def test_the_engine_knows_neither_web_nor_network_emulation() -> None:
    wrong = [
        f"{path.relative_to(ROOT)} imports {module}"
        for path in source_files("engine")
        for module in imported_modules(path)
        if module.partition(".")[0] in FOREIGN_TO_THE_ENGINE
    ]
    assert not wrong


def test_relative_and_nested_imports_are_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "engine" / "inner" / "module.py"
    file.parent.mkdir(parents=True)
    file.write_text("from .. import cluster\ndef f():\n    import emulator.network\nimport webapp.runs\n")
    monkeypatch.setattr(sys.modules[__name__], "ROOT", tmp_path)
    found = set(imported_modules(file))
    assert {"engine.cluster", "emulator.network", "webapp.runs"} <= found


def test_planning_predicting_and_the_command_line_load_no_torch() -> None:
    program = (
        "import sys\n"
        "import engine.cli.commands, engine.reports.fold, engine.reports.compare, engine.reports.perfetto\n"
        "import engine.runs.predict, engine.runs.execute, engine.strategies.registry\n"
        "import engine.models.catalogue, topologies\n"
        "loaded = {'torch', 'transformers', 'django', 'mininet'} & set(sys.modules)\n"
        "sys.exit(f'loaded {loaded}' if loaded else 0)\n"
    )
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("room", (*ROOMS, "tests"))
def test_no_file_outgrows_the_ceiling(room: str) -> None:
    long = {
        path.relative_to(ROOT).as_posix(): lines
        for path in source_files(room)
        if (lines := len(path.read_text(encoding="utf-8").splitlines())) > CEILING_LINES
    }
    assert not long


@pytest.mark.parametrize("room", ROOMS)
def test_no_file_is_a_drawer_for_everything(room: str) -> None:
    assert not [path for path in source_files(room) if path.name in FORBIDDEN_FILES]


@pytest.mark.parametrize("room", ROOMS)
def test_every_file_says_what_it_is_for(room: str) -> None:
    silent = [
        path.relative_to(ROOT).as_posix()
        for path in source_files(room)
        if "migrations" not in path.parts
        and path.read_text(encoding="utf-8").strip()
        and not ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
    ]
    assert not silent


@pytest.mark.parametrize("room", ROOMS)
def test_nothing_is_imported_by_wildcard(room: str) -> None:
    wild = [
        path.relative_to(ROOT).as_posix()
        for path in source_files(room)
        if any(module.endswith(".*") for module in imported_modules(path))
    ]
    assert not wild
