"""`loom new method NAME`: write a small folder with a method that works, its test and an experiment, to begin
with.
"""

from __future__ import annotations

import argparse
import keyword
import sys
from importlib.util import find_spec
from pathlib import Path
from string import Template

from engine.domain.errors import SpecError
from engine.strategies.outside import NAME
from engine.strategies.registry import STRATEGIES

TEMPLATES = Path(__file__).with_name("new_method")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("what", choices=("method",))
    parser.add_argument("name", metavar="NAME", help="small letters, digits, _ and -")
    parser.add_argument("--into", default=".", metavar="DIR", help="where the folder NAME is made (here)")


def run(args: argparse.Namespace) -> int:
    folder = Path(args.into) / args.name
    files = files_of(args.name)
    try:
        folder.mkdir(parents=True)
    except OSError as error:
        raise SpecError(
            f"{folder}: cannot be made: {error.strerror}: choose another name or --into."
        ) from error
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    sys.stdout.write(
        f"{folder} has {', '.join(files)}.\n"
        f"Next: cd {folder}, pip install -e '.[test]', pytest; or, without installing it, "
        f"--strategy {folder / _module(args.name)}.py\n"
    )
    return 0


def files_of(name: str) -> dict[str, str]:
    """By their names. Raises `SpecError` for a name that is wrong or taken."""
    module = _module(name)
    if not NAME.fullmatch(name) or not module.isidentifier() or keyword.iskeyword(module):
        raise SpecError(
            f"new method {name}: expected small letters, digits, _ and -, beginning with a letter."
        )
    if name in {chosen.name for chosen in STRATEGIES}:
        raise SpecError(f"new method {name}: there is a method of this name: choose another.")
    if find_spec(module) is not None:
        raise SpecError(f"new method {name}: Python has a module {module} already: choose another name.")
    words = module.split("_")
    values = {
        "name": name,
        "module": module,
        "package": name.replace("_", "-"),
        "cls": "".join(word.capitalize() for word in words),
        "title": " ".join(filter(None, words)).capitalize(),
    }
    places = {
        f"{module}.py": "method",
        f"test_{module}.py": "test",
        "experiment.toml": "experiment",
        "pyproject.toml": "pyproject",
        "README.md": "readme",
    }
    return {
        file: Template((TEMPLATES / f"{part}.txt").read_text(encoding="utf-8")).substitute(values)
        for file, part in places.items()
    }


def _module(name: str) -> str:
    return name.replace("-", "_")
