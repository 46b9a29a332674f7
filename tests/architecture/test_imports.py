"""The rooms and the arrows between them: tests/devtools/rooms.toml against the imports in the code."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.devtools.imports import (
    circles,
    imported_modules,
    imported_typescript,
    is_documented,
    python_files,
    python_graph,
    typescript_files,
)
from tests.devtools.rooms import ROOT, Part, floors, read_parts, room_of

PARTS = read_parts()
PARTS_OF_ROOMS = [part for part in PARTS if part.rooms and part.name != "frontend"]
FILES = {part.name: python_files(ROOT / part.folder) for part in PARTS}
FOREIGN_TO_THE_ENGINE = {"django", "channels", "celery", "redis", "mininet", "ninja"}
CEILING_LINES = 500
MODULES_OF_A_ROOM = 15
FORBIDDEN_FILES = {"utils.py", "helpers.py", "misc.py", "common.py"}


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def arrows_between_rooms(part: Part) -> dict[tuple[str, str], str]:
    """(room, imported room) → the first file that makes this arrow."""
    folder = ROOT / part.folder
    found: dict[tuple[str, str], str] = {}
    for path in FILES[part.name]:
        room = room_of(part, path.relative_to(folder).as_posix())
        for module in imported_modules(path, ROOT):
            top, _, inside = module.partition(".")
            other = room_of(part, inside.replace(".", "/")) or room_of(part, inside.replace(".", "/") + ".py")
            if room and other and top == part.folder and room != other:
                found.setdefault((room, other), f"{name_of(path)} imports {module}")
    return found


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.name)
def test_a_part_imports_only_the_parts_that_rooms_toml_names(part: Part) -> None:
    parts = {other.name for other in PARTS}
    wrong = []
    for path in FILES[part.name]:
        reached = {module.partition(".")[0] for module in imported_modules(path, ROOT)} & parts
        allowed = {part.name, *part.imports, part.doors.get(name_of(path))}
        wrong += [f"{name_of(path)} imports {other}" for other in sorted(reached - allowed)]
    assert not wrong


@pytest.mark.parametrize("part", PARTS_OF_ROOMS, ids=lambda part: part.name)
def test_the_arrows_between_rooms_are_those_of_rooms_toml(part: Part) -> None:
    """Add an arrow to tests/devtools/rooms.toml only if it belongs there; then run `./loom docs`."""
    found = arrows_between_rooms(part)
    allowed = {(room.name, other) for room in part.rooms for other in room.imports}
    assert [witness for arrow, witness in found.items() if arrow not in allowed] == []
    assert sorted(allowed - set(found)) == [], "rooms.toml allows arrows that no import makes any more"


@pytest.mark.parametrize("part", PARTS_OF_ROOMS, ids=lambda part: part.name)
def test_every_file_is_in_a_room(part: Part) -> None:
    folder = ROOT / part.folder
    outside = [
        name_of(path)
        for path in FILES[part.name]
        if room_of(part, path.relative_to(folder).as_posix()) is None and path != folder / "__init__.py"
    ]
    assert not outside


def test_the_server_is_twelve_rooms_on_six_floors_with_few_modules_in_each_folder() -> None:
    (server,) = (part for part in PARTS if part.name == "webapp")
    assert len(server.rooms) <= 12 and max(floors(server.rooms).values()) < 6
    counts = Counter(
        (room_of(server, path.relative_to(ROOT / "webapp").as_posix()), path.parent)
        for path in FILES["webapp"]
        if path.name != "__init__.py" and not {"migrations", "management"} & set(path.parts)
    )
    assert {place: count for place, count in counts.items() if count > MODULES_OF_A_ROOM} == {}


@pytest.mark.parametrize("part", [part for part in PARTS if part.doors], ids=lambda part: part.name)
def test_every_door_is_used(part: Part) -> None:
    for file, other in part.doors.items():
        assert other in {module.partition(".")[0] for module in imported_modules(ROOT / file, ROOT)}


def test_no_modules_import_each_other_in_a_circle() -> None:
    """Imports inside functions and under TYPE_CHECKING count too."""
    folders = [ROOT / part.folder for part in PARTS if part.name not in ("frontend", "loom")]
    assert circles(python_graph(folders, ROOT)) == set()


def test_no_typescript_files_import_each_other_in_a_circle() -> None:
    source = (ROOT / "webapp/frontend/src").resolve()
    graph = {
        path.as_posix(): {other.as_posix() for other in imported_typescript(path, source)}
        for path in typescript_files(source)
    }
    assert sum(map(len, graph.values())) > len(graph)
    assert circles(graph) == set()


@pytest.mark.parametrize("part", PARTS_OF_ROOMS, ids=lambda part: part.name)
def test_every_room_has_code_that_these_tests_read(part: Part) -> None:
    folder = ROOT / part.folder
    counts = Counter(room_of(part, path.relative_to(folder).as_posix()) for path in FILES[part.name])
    assert not [room.name for room in part.rooms if counts[room.name] < 2]


def test_the_engine_imports_neither_web_nor_network_emulation() -> None:
    wrong = [
        f"{name_of(path)} imports {module}"
        for path in FILES["engine"]
        for module in imported_modules(path, ROOT)
        if module.partition(".")[0] in FOREIGN_TO_THE_ENGINE
    ]
    assert not wrong


def test_planning_predicting_and_the_command_line_load_no_torch() -> None:
    program = (
        "import argparse, sys\n"
        "import engine.reports.fold, engine.reports.compare, engine.reports.perfetto\n"
        "import engine.runs.predict, engine.runs.execute, engine.strategies.registry\n"
        "import engine.models.catalogue, topologies\n"
        "import bench.commands, emulator.cli.main, webapp.operations.commands, tests.devtools.commands\n"
        "for part in (bench, emulator.cli.main, webapp.operations, tests.devtools):\n"
        "    for command in getattr(part, 'commands', part).COMMANDS:\n"
        "        command.add_arguments(argparse.ArgumentParser())\n"
        "loaded = {'torch', 'transformers', 'django', 'mininet'} & set(sys.modules)\n"
        "sys.exit(f'loaded {loaded}' if loaded else 0)\n"
    )
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("part", (*FILES, "tests"))
def test_no_file_outgrows_the_ceiling(part: str) -> None:
    long = {
        name_of(path): lines
        for path in FILES.get(part) or python_files(ROOT / part)
        if (lines := len(path.read_text(encoding="utf-8").splitlines())) > CEILING_LINES
    }
    assert not long


@pytest.mark.parametrize("part", FILES)
def test_no_file_is_a_drawer_for_everything(part: str) -> None:
    assert not [path for path in FILES[part] if path.name in FORBIDDEN_FILES]


@pytest.mark.parametrize("part", FILES)
def test_every_file_says_what_it_is_for(part: str) -> None:
    silent = [
        name_of(path)
        for path in FILES[part]
        if "migrations" not in path.parts
        and path.read_text(encoding="utf-8").strip()
        and not is_documented(path, ROOT)
    ]
    assert not silent


@pytest.mark.parametrize("part", FILES)
def test_nothing_is_imported_by_wildcard(part: str) -> None:
    wild = [
        name_of(path)
        for path in FILES[part]
        if any(module.endswith(".*") for module in imported_modules(path, ROOT))
    ]
    assert not wild
