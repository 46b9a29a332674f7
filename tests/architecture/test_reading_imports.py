"""What the import tests stand on: reading imports, finding circles, reading rooms.toml. Cases by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.devtools.imports import circles, imported_modules, imported_typescript, python_graph
from tests.devtools.rooms import floors, read_parts, room_of

HOUSE = """
[[part]]
name = "house"
title = ""
text = ""
folder = "house"
imports = []
[[part.room]]
name = "cellar"
text = ""
imports = []
[[part.room]]
name = "kitchen"
text = ""
imports = ["cellar"]
[[part.room]]
name = "hall"
text = ""
paths = ["hall", "door.py"]
imports = ["cellar"]
[[part.room]]
name = "roof"
text = ""
imports = ["kitchen"]
"""


def write(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)


def test_relative_nested_and_type_checking_imports_are_read(tmp_path: Path) -> None:
    code = (
        "from .. import cluster\n"
        "def f():\n    import emulator.network\n"
        "if TYPE_CHECKING:\n    from webapp.events import publisher\n"
    )
    write(tmp_path, {"engine/inner/module.py": code})
    found = set(imported_modules(tmp_path / "engine/inner/module.py", tmp_path))
    assert {"engine.cluster", "emulator.network", "webapp.events.publisher"} <= found


def test_a_circle_through_a_function_and_one_through_a_package_are_found(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "a/__init__.py": "",
            "a/one.py": "import a.two\n",
            "a/two.py": "def f():\n    from a import one\n",
            "a/three.py": "import a.one\n",
            "b/__init__.py": "from b.inner import x\n",
            "b/inner.py": "x = 1\n",
            "c.py": "import b.inner\n",
        },
    )
    graph = python_graph([tmp_path / "a", tmp_path / "b", tmp_path / "c.py"], tmp_path)
    assert graph["c"] == {"b", "b.inner"}
    assert circles(graph) == {frozenset({"a.one", "a.two"})}
    write(tmp_path, {"b/inner.py": "import c\n"})
    graph = python_graph([tmp_path / "b", tmp_path / "c.py"], tmp_path)
    assert circles(graph) == {frozenset({"b", "b.inner", "c"})}


def test_typescript_imports_are_resolved_to_files(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "page/Page.tsx": "import { a } from '@/api';\nconst b = () => import('./Part');\n",
            "page/Part.tsx": "import type { C } from '../c';\n",
            "api/index.ts": "",
            "c.ts": "",
        },
    )
    found = {path.name for path in imported_typescript(tmp_path / "page/Page.tsx", tmp_path)}
    assert found == {"index.ts", "Part.tsx"}
    assert [path.name for path in imported_typescript(tmp_path / "page/Part.tsx", tmp_path)] == ["c.ts"]


def test_floors_count_from_the_room_that_imports_nothing() -> None:
    (house,) = read_parts(HOUSE)
    assert floors(house.rooms) == {"cellar": 0, "kitchen": 1, "hall": 1, "roof": 2}


def test_a_room_is_found_by_folder_and_by_file() -> None:
    (house,) = read_parts(HOUSE)
    files = ("hall/mirror.py", "door.py", "cellar", "hallway/x.py", "window.py")
    assert [room_of(house, file) for file in files] == ["hall", "hall", "cellar", None, None]


def test_a_room_that_imports_a_later_one_is_refused() -> None:
    upside_down = HOUSE.replace('imports = ["kitchen"]', "imports = []").replace(
        'name = "kitchen"\ntext = ""\nimports = ["cellar"]', 'name = "kitchen"\ntext = ""\nimports = ["roof"]'
    )
    with pytest.raises(ValueError, match="house: kitchen imports roof, which does not stand before it"):
        read_parts(upside_down)
