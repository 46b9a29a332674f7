"""What is public: the stored list of names and signatures, and that our own methods need nothing else."""

from __future__ import annotations

import ast
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from tests.devtools.public_api import FILE, MODULES, public_api
from tests.devtools.rooms import ROOT

STRATEGIES = ROOT / "engine" / "strategies"
OWN = ("registry.py", "outside.py")
"""What loads methods, and is none."""

SHARED = ("engine.strategies.shared.", "engine.strategies.planner.")


def used_by_methods() -> set[tuple[str, str]]:
    """(module, name) of all that our methods import from elsewhere, or from what they share."""
    found = set()
    for path in STRATEGIES.rglob("*.py"):
        if path.parent == STRATEGIES and path.name in OWN:
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.ImportFrom) or not (node.module or "").startswith("engine."):
                continue
            module = str(node.module)
            if module.startswith(SHARED) or not module.startswith("engine.strategies."):
                found |= {(module, alias.name) for alias in node.names}
    return found


def public_objects() -> dict[str, object]:
    modules = [import_module(name) for name in MODULES if name.startswith("edgeloom.method")]
    return {name: getattr(module, name) for module in modules for name in module.__all__}


def test_names_and_signatures_are_those_of_the_stored_list() -> None:
    """A change here is a change for everybody outside: `./loom docs` writes it, the changelog says it."""
    assert public_api() == (ROOT / FILE).read_text(encoding="utf-8")


def test_all_that_our_own_methods_use_is_public() -> None:
    used, public = used_by_methods(), public_objects()
    assert len(used) > 200
    hidden = [
        f"{module}.{name}"
        for module, name in sorted(used)
        if public.get(name) is not getattr(import_module(module), name)
    ]
    assert hidden == []


def test_every_public_name_is_in_one_place_only() -> None:
    names = [name for module in MODULES if module != "edgeloom" for name in import_module(module).__all__]
    twice = {name for name in names if names.count(name) > 1}
    assert twice == {"ClusterSpec", "DeviceSpec"}  # a method has them at hand, and so has who builds clusters


def test_the_client_needs_nothing_of_the_engine() -> None:
    program = (
        "import sys; from edgeloom import Client; "
        "sys.exit(any(name.split('.')[0] in ('engine', 'emulator') for name in sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("package", ["engine", "emulator", "topologies"])
def test_a_foreign_package_in_the_way_is_named(package: str, tmp_path: Path) -> None:
    (tmp_path / package).mkdir()
    (tmp_path / package / "__init__.py").write_text("")
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            f"import sys; sys.path[:0] = [{str(tmp_path)!r}, {str(ROOT)!r}]; import edgeloom.method",
        ],
        cwd="/",
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("ImportError: edgeloom needs its own package")
    assert str(tmp_path / package) in last and "environment of its own" in last


def test_the_command_names_a_foreign_package_without_a_traceback(tmp_path: Path) -> None:
    (tmp_path / "engine").mkdir()
    (tmp_path / "engine" / "__init__.py").write_text("")
    program = (
        f"import sys; sys.path[:0] = [{str(tmp_path)!r}, {str(ROOT)!r}]; "
        "from edgeloom.command_line import main; sys.exit(main())"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd="/", capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1 and "rename or uninstall that one" in done.stderr
