"""Methods from outside EdgeLoom: those that installed packages declare, and Python files that somebody names.

A package declares a method by an entry point of the group `edgeloom.methods`, called as the method is.
Whatever is wrong with a method is one sentence with its own file and line. `registry.py` says which methods
there are.
"""

from __future__ import annotations

import hashlib
import inspect
import os
import re
import sys
import traceback
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from engine.domain.errors import EdgeLoomError, PlanError, SpecError
from engine.domain.method_report import MethodReport
from engine.domain.plan import Layout
from engine.domain.spec import MethodOrigin
from engine.program.strategy import Params, Strategy
from engine.strategies.trial import fault_of

GROUP = "edgeloom.methods"
ACTIVE = "LOOM_METHODS"
"""The variable that names the installed methods which are used, separated by commas; unset: all of them."""

NAME = re.compile(r"[a-z][a-z0-9_-]{0,30}")
OURS = ("engine", "emulator", "edgeloom", "webapp") if __name__.startswith("engine.") else ("edgeloom",)
"""Top-level packages of EdgeLoom: a checkout has several, the wheel has one."""

DIGITS = 16
LIMITS = {
    "MemoryError": "it needs more memory than its process may have",
    "SoftTimeLimitExceeded": "it takes longer than it may",
}
"""What errors mean that a process gets from its limits; the second is Celery's."""


class Outside(NamedTuple):
    """A method from outside; `source` is the text of its file, if it is from one."""

    method: Strategy
    origin: MethodOrigin
    source: str = ""


class Unusable(NamedTuple):
    """A method that is declared and cannot be used, and why, in one sentence."""

    name: str
    package: str
    reason: str


# Packages -----------------------------------------------------------------------------------------
def installed(taken: Collection[str]) -> tuple[tuple[Outside, ...], tuple[Unusable, ...]]:
    """The installed methods that are active, and what is wrong with the others of these. `taken` are the
    names of EdgeLoom's own. Code of methods that are not active is not imported.
    """
    active = active_names()
    declared = sorted(entry_points(group=GROUP), key=lambda point: (point.name, *_package_of(point)))
    found: list[Outside] = []
    unusable: list[Unusable] = []
    for point in declared:
        if active is not None and point.name not in active:
            continue
        try:
            one = _of_entry_point(point)
            check_free(one, {*taken, *(each.method.name for each in found)})
        except SpecError as error:
            unusable.append(Unusable(point.name, _package_of(point)[0], str(error)))
        else:
            found.append(one)
    for name in sorted((active or frozenset()) - {point.name for point in declared}):
        reason = f"{ACTIVE} names {name}, and no installed package declares it: install it, or take it out."
        unusable.append(Unusable(name, "", reason))
    return tuple(found), tuple(unusable)


def active_names() -> frozenset[str] | None:
    """None: all."""
    given = os.environ.get(ACTIVE)
    return None if given is None else frozenset(filter(None, map(str.strip, given.split(","))))


def _of_entry_point(point: EntryPoint) -> Outside:
    """The method of an entry point, imported in a child first. Raises `SpecError` with the method's own file
    and line.
    """
    package, version = _package_of(point)
    where = f"method {point.name} of the package {package}"
    folder = place_of(point.module)
    fault = fault_of(point.load, lambda error: words_of(error, folder))
    if fault:
        raise SpecError(f"{where}: {fault}.")
    with _told(where, folder, SpecError):
        found = point.load()
    method = checked(found, where)
    if method.name != point.name:
        raise SpecError(
            f"{where}: its class has the name {method.name}: give entry point and class one name."
        )
    digest = _digest_of(folder) if folder else ""
    return Outside(method, MethodOrigin(package=package, version=version, digest=digest))


def _package_of(point: EntryPoint) -> tuple[str, str]:
    return (point.dist.name, point.dist.version) if point.dist else ("", "")


def place_of(module: str) -> Path | None:
    """The folder of the module's top-level package, or its file; None if there is no such module."""
    found = find_spec(module.partition(".")[0])
    if found is None or found.origin is None:
        return None
    origin = Path(found.origin)
    return origin.parent if found.submodule_search_locations else origin


def _digest_of(place: Path) -> str:
    """Of all Python code below a folder, or of one file."""
    found = hashlib.sha256()
    for path in sorted(place.rglob("*.py")) if place.is_dir() else [place]:
        found.update(path.relative_to(place.parent).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return found.hexdigest()[:DIGITS]


# Files --------------------------------------------------------------------------------------------
def is_file(text: str) -> bool:
    """Whether `text` names a file, and not a method: FILE.py or FILE.py:CLASS."""
    return text.endswith(".py") or ".py:" in text


def of_file(reference: str) -> Outside:
    """The method of FILE.py:CLASS, or of FILE.py that has one only. Raises `SpecError`."""
    name, _, attribute = reference.rpartition(":") if ".py:" in reference else (reference, "", "")
    path = Path(name).resolve()
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is no text in UTF-8"
        raise SpecError(f"{reference}: {path} cannot be read: {why}.") from error
    return of_source(text, str(path), attribute)


def of_source(text: str, file: str, attribute: str = "") -> Outside:
    """The method in the text of a file. Its module is called as the file, so that it clashes with none."""
    module = ModuleType(file)
    module.__file__ = file
    before = sys.modules.get(file)
    sys.modules[file] = module
    try:
        with _told(file, Path(file), SpecError):
            exec(compile(text, file, "exec", dont_inherit=True), module.__dict__)
        found = getattr(module, attribute, None) if attribute else _only_method(module, file)
        if found is None:
            raise SpecError(f"{file}: it has no class {attribute}: name one that it has.")
        method = checked(found, f"{file}:{attribute}" if attribute else file)
    except BaseException:
        if before is None:
            del sys.modules[file]
        else:
            sys.modules[file] = before
        raise
    digest = hashlib.sha256(text.encode()).hexdigest()[:DIGITS]
    origin = MethodOrigin(file=file, attribute=type(method).__name__, digest=digest)
    return Outside(method, origin, text)


def _only_method(module: ModuleType, file: str) -> Any:
    found = [
        one
        for one in vars(module).values()
        if isinstance(one, type) and issubclass(one, Strategy) and one.__module__ == module.__name__
    ]
    if len(found) != 1:
        names = ", ".join(one.__name__ for one in found) or "none"
        raise SpecError(f"{file}: expected one class of a method, got {names}: name one, as FILE.py:CLASS.")
    return found[0]


def of_object(method: Strategy) -> Outside:
    """A method as it stands in this process. One of an imported module has its file's text, for other
    processes; one of a notebook or a script has none. Raises `SpecError`.
    """
    kind = type(method)
    checked(kind, f"class {kind.__qualname__}")
    file = None if kind.__module__ == "__main__" else getattr(sys.modules[kind.__module__], "__file__", None)
    if file is None:
        return Outside(method, MethodOrigin(attribute=kind.__qualname__))
    text = Path(file).read_text(encoding="utf-8")
    digest = hashlib.sha256(text.encode()).hexdigest()[:DIGITS]
    return Outside(method, MethodOrigin(file=file, attribute=kind.__qualname__, digest=digest), text)


# Checking -----------------------------------------------------------------------------------------
def checked(found: Any, where: str) -> Strategy:
    """The method of this class. Raises `SpecError` unless it is complete."""
    if not (isinstance(found, type) and issubclass(found, Strategy)):
        raise SpecError(
            f"{where}: expected a class that derives from edgeloom.method.Strategy, got {found!r}."
        )
    if inspect.isabstract(found):
        missing = " and ".join(sorted(found.__abstractmethods__))
        raise SpecError(f"{where}: the class {found.__name__} has no {missing}: write it.")
    for key in ("name", "title", "summary"):
        if not isinstance(getattr(found, key, None), str) or not getattr(found, key):
            raise SpecError(f"{where}: the class {found.__name__} has no {key}: give it one, a text.")
    if not NAME.fullmatch(found.name):
        raise SpecError(f"{where}: its name is {found.name!r}: expected small letters, digits, _ and -.")
    for key, kind in (("Params", Params), ("Layout", Layout), ("Report", MethodReport)):
        given = getattr(found, key, None)
        if key == "Report" and given is None:
            continue
        if not (isinstance(given, type) and issubclass(given, kind)):
            raise SpecError(
                f"{where}: {key} of the class {found.__name__} is {given!r}: expected a class that derives "
                f"from edgeloom.method.{kind.__name__}."
            )
    with _told(where, None, SpecError):
        return found()


def check_free(one: Outside, taken: Collection[str]) -> None:
    """Check that its name is not taken; raises `SpecError` if it is."""
    if one.method.name in taken:
        raise SpecError(
            f"method {one.method.name} of {one.origin}: there is a method of this name already: rename it."
        )


# Errors -------------------------------------------------------------------------------------------
def is_outside(method: Strategy) -> bool:
    return not _is_ours(type(method).__module__)


def _is_ours(module: str) -> bool:
    return module.partition(".")[0] in OURS


@contextmanager
def errors_of(method: Strategy, what: str, kind: type[EdgeLoomError] = PlanError) -> Iterator[None]:
    """Inside the block, what `method` from outside raises becomes a sentence of `kind` with its file and
    line. Errors that are sentences stay, and so do those of EdgeLoom's own methods, which are mistakes of
    ours.
    """
    if not is_outside(method):
        yield
        return
    written = (getattr(one, "__code__", None) for one in vars(type(method)).values())
    folder = next((Path(code.co_filename).parent for code in written if code is not None), None)
    with _told(f"{method.name}: {what}", folder, kind):
        yield


@contextmanager
def _told(where: str, place: Path | None, kind: type[EdgeLoomError]) -> Iterator[None]:
    try:
        yield
    except EdgeLoomError:
        raise
    except (Exception, SystemExit) as error:
        raise kind(f"{where}: {words_of(error, place)}.") from error


def words_of(error: BaseException, place: Path | None = None) -> str:
    """An exception in words: its type, what it says, and the line that raised it, of the code in `place` (or
    of any that is not EdgeLoom's).
    """
    said = LIMITS.get(type(error).__name__) or " ".join(str(error).split()).rstrip(".")
    text = f"{type(error).__name__}: {said}" if said else type(error).__name__
    if isinstance(error, SyntaxError) and error.filename:
        return f"SyntaxError: {error.msg} ({error.filename}, line {error.lineno})"
    foreign = [
        (frame.f_code.co_filename, line)
        for frame, line in traceback.walk_tb(error.__traceback__)
        if not frame.f_code.co_filename.startswith("<frozen")
        and not _is_ours(str(frame.f_globals.get("__name__")))
    ]
    own = [(file, line) for file, line in foreign if place is not None and file.startswith(str(place))]
    last = (own or foreign)[-1:]
    return f"{text} ({last[0][0]}, line {last[0][1]})" if last else text
