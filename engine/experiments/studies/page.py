"""A study as a page of text: what is inside, by whom it can be repeated, and how."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from engine.domain.units import human
from engine.experiments.studies.study import StudiedExperiment, StudiedMethod, StudiedModel, Study

SHOWN = 12


def page_of(study: Study, lacking: Iterable[str] = ()) -> str:
    """`lacking`: what this machine lacks to repeat it, in sentences."""
    return "\n".join(_lines(study, tuple(lacking))) + "\n"


def _lines(study: Study, lacking: tuple[str, ...]) -> Iterator[str]:
    total = sum(file.bytes for file in study.files.values())
    size = f"{len(study.files)} files, {human(total, 'B')}"
    yield f"A study of {study.packed_on}: {size}, every digest is right."
    yield f"Licence: {study.licence or 'none given'}."
    yield f"Packed with {', '.join(f'{name} {value}' for name, value in study.environment.items())}."
    yield from _part("Experiments", map(_experiment, study.experiments))
    yield from _part("Methods", map(_method, study.methods))
    yield from _part("Models", map(_model, study.models))
    yield from _part("Clusters", (f"{name}: {file}" for name, file in study.clusters.items()))
    if lacking:
        yield from _part("To repeat all of it, this machine lacks", lacking)


def _part(title: str, lines: Iterable[str]) -> Iterator[str]:
    every = list(lines)
    if every:
        yield ""
        yield title
        yield from (f"  {line}" for line in every[:SHOWN])
        if len(every) > SHOWN:
            yield f"  and {len(every) - SHOWN} more, in study.json"


def _experiment(one: StudiedExperiment) -> str:
    seeds = "1 seed" if len(one.seeds) == 1 else f"{len(one.seeds)} seeds"
    what = f"{one.points} points, {one.results} results ({', '.join(one.worlds)}), {seeds}"
    return f"{one.title or one.name}: {what}; see {one.folder}/report.html"


def _method(one: StudiedMethod) -> str:
    if one.origin is None:
        return f"{one.name}: comes with EdgeLoom"
    source = (
        f"; source, which nothing here runs by itself: {one.source}" if one.source else "; source not in it"
    )
    return f"{one.name}: from {one.origin}, digest {one.origin.digest}{source}"


def _model(one: StudiedModel) -> str:
    size = f"{human(one.parameters, '')} parameters, {human(one.bytes, 'B')}".replace("  ", " ")
    if one.weights == "random":
        return f"{one.name}: {size}, weights drawn from the seed"
    return f"{one.name}: {size}, weights with the digest {one.digest[:16]}, not in it"
