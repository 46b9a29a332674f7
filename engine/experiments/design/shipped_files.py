"""The experiments that come with the program, by name: the files in `shipped/`."""

from __future__ import annotations

from pathlib import Path

from engine.domain.errors import SpecError
from engine.domain.experiment import Experiment
from engine.experiments.design.files import load_file

FOLDER = Path(__file__).with_name("shipped")


def shipped_names() -> tuple[str, ...]:
    return tuple(sorted(path.stem for path in FOLDER.glob("*.toml")))


def load(path_or_name: str) -> Experiment:
    """A shipped experiment by name, or any TOML or JSON file by path; raises `SpecError`."""
    if path_or_name in shipped_names():
        return load_file(FOLDER / f"{path_or_name}.toml")
    path = Path(path_or_name)
    if not path.exists():
        known = ", ".join(shipped_names())
        raise SpecError(f"{path}: no such experiment: give a TOML or JSON file, or one of {known}.")
    return load_file(path)
