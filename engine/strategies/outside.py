"""Methods from outside EdgeLoom: those that installed packages declare, and Python files that somebody names.

A package declares a method by an entry point of the group `edgeloom.methods`, called as the method is.
Whatever is wrong with a method is one sentence with its own file and line. `registry.py` says which methods
there are.
"""

from __future__ import annotations

import hashlib
import inspect
import marshal
import re
import sys
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from importlib.metadata import EntryPoint
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from engine.domain.errors import EdgeLoomError, PlanError, SpecError
from engine.domain.method_report import MethodReport
from engine.domain.plan import Layout
from engine.domain.spec import MethodOrigin
from engine.plugins.installed import METHOD, Installed, imported, installed, package_of, place_of
from engine.plugins.words import is_ours, told
from engine.program.strategy import Params, Strategy

NAME = re.compile(r"[a-z][a-z0-9_-]{0,30}")
DIGITS = 16


class Outside(NamedTuple):
    """A method from outside; `source` is the text of its file, if it is from one."""

    method: Strategy
    origin: MethodOrigin
    source: str = ""


# Packages -----------------------------------------------------------------------------------------
def installed_methods(taken: Collection[str]) -> Installed[Outside]:
    """The installed methods that are active, and what is wrong with the others of these. `taken` are the
    names of EdgeLoom's own.
    """
    return installed(METHOD, taken, _of_entry_point)


def _of_entry_point(point: EntryPoint, where: str) -> Outside:
    method = checked(imported(point, where), where)
    if method.name != point.name:
        raise SpecError(
            f"{where}: its class has the name {method.name}: give entry point and class one name."
        )
    package, version = package_of(point)
    folder = place_of(point.module)
    digest = _digest_of(folder) if folder else ""
    return Outside(method, MethodOrigin(package=package, version=version, digest=digest))


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
        with told(file, Path(file), SpecError):
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
    processes; one of a notebook or a script has none, and counts as another once its text is another.
    Raises `SpecError`.
    """
    kind = type(method)
    checked(kind, f"class {kind.__qualname__}")
    file = None if kind.__module__ == "__main__" else getattr(sys.modules[kind.__module__], "__file__", None)
    if file is None:
        return Outside(method, MethodOrigin(attribute=kind.__qualname__, digest=_digest_of_class(kind)))
    text = Path(file).read_text(encoding="utf-8")
    digest = hashlib.sha256(text.encode()).hexdigest()[:DIGITS]
    return Outside(method, MethodOrigin(file=file, attribute=kind.__qualname__, digest=digest), text)


def _digest_of_class(kind: type) -> str:
    """The digest of the text of a class; of its functions where Python has no text, as at a prompt."""
    try:
        code = inspect.getsource(kind).encode()
    except (OSError, TypeError):
        functions = [one.__code__ for one in vars(kind).values() if inspect.isfunction(one)]
        code = b"".join(marshal.dumps(function) for function in functions)
    return hashlib.sha256(code).hexdigest()[:DIGITS]


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
    with told(where, None, SpecError):
        return found()


# Errors -------------------------------------------------------------------------------------------
def is_outside(method: Strategy) -> bool:
    return not is_ours(type(method).__module__)


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
    file = next((Path(code.co_filename) for code in written if code is not None), None)
    # A module of no package is alone: its folder has all that is installed.
    place = file.parent if file is not None and "." in type(method).__module__ else file
    with told(f"{method.name}: {what}", place, kind):
        yield
