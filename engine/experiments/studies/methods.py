"""The methods of a study, and their source: as a file, or as a small folder that pip installs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from importlib.metadata import entry_points, requires
from pathlib import Path

import tomli_w

from engine.domain.errors import SpecError
from engine.domain.spec import RunSpec
from engine.experiments.studies.study import NAME, StudiedMethod
from engine.plugins.installed import METHOD
from engine.strategies.registry import folder_of, source_of, strategy_of

FOLDER = "methods"
LARGEST_BYTES = 4_000_000
"""Of a method's source: a package with more is more than a method."""


def methods_of(runs: Iterable[RunSpec], with_sources: bool) -> tuple[StudiedMethod, ...]:
    """Every method of `runs`, once. Raises `SpecError` if this process has another one of the name."""
    found: dict[str, StudiedMethod] = {}
    for run in runs:
        if run.strategy not in found:
            found[run.strategy] = _method(run, with_sources)
    return tuple(found[name] for name in sorted(found))


def _method(run: RunSpec, with_sources: bool) -> StudiedMethod:
    origin, source = run.method, ""
    if origin is not None and with_sources:
        file = f"/{Path(origin.file).name}" if origin.file else ""
        source = f"{FOLDER}/{origin.package or run.strategy}{file}"
    if source and not NAME.fullmatch(source):
        raise SpecError(
            f"method {run.strategy}: its source is called {source}, which is no name for a file of a study: "
            "rename it, with letters, digits, . _ and -."
        )
    try:
        method = strategy_of(run)
    except SpecError:  # a server's workers have it, and perhaps not this process
        if source:
            raise
        return StudiedMethod(name=run.strategy, origin=origin)
    shown = origin.model_copy(update={"file": Path(origin.file).name}) if origin else None
    about = {"title": method.title[:500], "paper": method.paper[:500]}
    return StudiedMethod(name=run.strategy, origin=shown, source=source, **about)


def sources_of(methods: Iterable[StudiedMethod]) -> Iterator[tuple[str, bytes]]:
    """Name and content of every file of the methods' source."""
    folders: set[str] = set()
    for method in methods:
        if not method.source or method.origin is None:
            continue
        if method.origin.file:
            yield method.source, source_of(method.name).encode()
        elif method.source not in folders:
            folders.add(method.source)
            yield from _package(method)


def _package(method: StudiedMethod) -> Iterator[tuple[str, bytes]]:
    """The code that the digest of the package is of, and what pip needs to install it."""
    place = folder_of(method.name)
    assert place is not None and method.origin is not None
    paths = sorted(place.rglob("*.py")) if place.is_dir() else [place]
    if sum(path.stat().st_size for path in paths) > LARGEST_BYTES:
        raise SpecError(
            f"method {method.name}: the code of the package {method.origin.package} has more than "
            f"{LARGEST_BYTES:,} bytes: pack the study without --sources, and name where the package is."
        )
    for path in paths:
        name = f"{method.source}/{path.relative_to(place.parent).as_posix()}"
        if not NAME.fullmatch(name):
            raise SpecError(f"{path}: is no name for a file of a study: letters, digits, . _ and - are.")
        yield name, path.read_bytes()
    yield f"{method.source}/pyproject.toml", _pyproject(method, place, paths).encode()


def _pyproject(method: StudiedMethod, place: Path, paths: list[Path]) -> str:
    assert method.origin is not None
    package = method.origin.package
    declared = {
        point.name: point.value
        for point in entry_points(group=METHOD.group)
        if point.dist is not None and point.dist.name == package
    }
    folders = {path.parent.relative_to(place.parent).as_posix().replace("/", ".") for path in paths}
    what = {"packages": sorted(folders)} if place.is_dir() else {"py-modules": [place.stem]}
    needs = [line for line in requires(package) or () if "extra ==" not in line.replace("'", '"')]
    document = {
        "build-system": {"requires": ["setuptools>=77"], "build-backend": "setuptools.build_meta"},
        "project": {
            "name": package,
            "version": method.origin.version,
            "dependencies": needs,
            "entry-points": {METHOD.group: declared},
        },
        "tool": {"setuptools": what},
    }
    return tomli_w.dumps(document)
