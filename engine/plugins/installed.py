"""What installed packages declare by entry points: each is used as it is, or left out with a sentence.

A group of entry points and the variable that names which of it are used have one word in common: methods are
in `edgeloom.methods`, and `LOOM_METHODS` names them. What is not named is not imported.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from pathlib import Path
from typing import Generic, NamedTuple, TypeVar

from engine.domain.errors import SpecError
from engine.plugins.trial import fault_of
from engine.plugins.words import told, words_of

T = TypeVar("T")


class Kind(NamedTuple):
    """A kind of what packages may add: its name in sentences, and the word of its group and variable."""

    name: str
    word: str

    @property
    def group(self) -> str:
        return f"edgeloom.{self.word}"

    @property
    def variable(self) -> str:
        """The variable that names those that are used, separated by commas; unset: all of them."""
        return f"LOOM_{self.word.upper()}"


METHOD, METRIC, DATA = Kind("method", "methods"), Kind("figure", "metrics"), Kind("pack of data", "data")
VARIABLES = tuple(kind.variable for kind in (METHOD, METRIC, DATA))


class Unusable(NamedTuple):
    """Something that is declared and cannot be used, and why, in one sentence."""

    name: str
    package: str
    reason: str


class Installed(NamedTuple, Generic[T]):
    """What is used, by name, and what is wrong with the others."""

    rows: dict[str, T]
    unusable: tuple[Unusable, ...]


def installed(kind: Kind, taken: Collection[str], use: Callable[[EntryPoint, str], T]) -> Installed[T]:
    """What packages declare of this kind, made by `use` of the entry point and the words for it in errors
    (`SpecError`). Names that are `taken` are refused.
    """
    active = active_names(kind.variable)
    declared = sorted(entry_points(group=kind.group), key=lambda one: (one.name, *package_of(one)))
    rows: dict[str, T] = {}
    unusable = []
    for point in declared:
        if active is not None and point.name not in active:
            continue
        package = package_of(point)[0]
        where = f"{kind.name} {point.name} of the package {package}"
        try:
            check_free(point.name, {*taken, *rows}, kind, where)
            rows[point.name] = use(point, where)
        except SpecError as error:
            unusable.append(Unusable(point.name, package, str(error)))
    for name in sorted((active or frozenset()) - {point.name for point in declared}):
        reason = (
            f"{kind.variable} names {name}, and no installed package declares it: install it, or take it out."
        )
        unusable.append(Unusable(name, "", reason))
    return Installed(rows, tuple(unusable))


def active_names(variable: str) -> frozenset[str] | None:
    """None: all."""
    given = os.environ.get(variable)
    return None if given is None else frozenset(filter(None, map(str.strip, given.split(","))))


def not_named() -> Iterator[tuple[Kind, tuple[str, ...]]]:
    """By kind the names that packages declare and its variable does not name: what a server does not use."""
    for kind in (METHOD, METRIC, DATA):
        declared = {point.name for point in entry_points(group=kind.group)}
        if others := declared - (active_names(kind.variable) or frozenset()):
            yield kind, tuple(sorted(others))


def check_free(name: str, taken: Collection[str], kind: Kind, where: str) -> None:
    """Check that the name is not taken; raises `SpecError` if it is."""
    if name in taken:
        raise SpecError(f"{where}: there is a {kind.name} of this name already: rename it.")


def imported(point: EntryPoint, where: str) -> object:
    """What an entry point names, imported in a child first. Raises `SpecError` with its own file and line."""
    folder = place_of(point.module)
    fault = fault_of(point.load, lambda error: words_of(error, folder))
    if fault:
        raise SpecError(f"{where}: {fault}.")
    with told(where, folder, SpecError):
        found: object = point.load()
    return found


def package_of(point: EntryPoint) -> tuple[str, str]:
    """Name and version of the package that declares it."""
    return (point.dist.name, point.dist.version) if point.dist else ("", "")


def place_of(module: str) -> Path | None:
    """The folder of the module's top-level package, or its file; None if there is no such module."""
    found = find_spec(module.partition(".")[0])
    if found is None or found.origin is None:
        return None
    origin = Path(found.origin)
    return origin.parent if found.submodule_search_locations else origin
