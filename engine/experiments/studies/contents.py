"""What goes into a study, from experiments that were carried out: files by their names, and `study.json`."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import count
from typing import Literal, NamedTuple

from engine.domain.cluster import ClusterSpec
from engine.domain.errors import SpecError
from engine.domain.experiment import Experiment
from engine.domain.model import ModelSpec
from engine.domain.spec import RunSpec
from engine.domain.stored import to_document
from engine.experiments.design.expand import Point
from engine.experiments.design.written_out import CLUSTER
from engine.experiments.presentation.origin import digest_of
from engine.experiments.presentation.report_files import files_of
from engine.experiments.results.rows import Row
from engine.experiments.studies.crate import crate_of
from engine.experiments.studies.methods import methods_of, sources_of
from engine.experiments.studies.private import own_paths, without_folders, without_own_paths, without_places
from engine.experiments.studies.study import (
    CRATE,
    MANIFEST,
    RUNS,
    StudiedExperiment,
    StudiedModel,
    Study,
)
from engine.models.weights.manifest import StoredFile
from engine.ops.sizes import model_bytes, num_parameters


class Carried(NamedTuple):
    """An experiment with its points and what they gave. Points without a result are left out of a study."""

    experiment: Experiment
    points: Sequence[Point]
    rows: Sequence[Row]


class About(NamedTuple):
    """What a study says besides: of the day, of the machine, and what others may do with it."""

    packed_on: str
    environment: Mapping[str, str]
    licence: str = ""
    with_sources: bool = False


class Clusters(NamedTuple):
    """How clusters are looked up by name and written as text, which the engine cannot."""

    named: Callable[[str], ClusterSpec]
    text: Callable[[ClusterSpec], str]


def contents_of(
    carried: Sequence[Carried], about: About, clusters: Clusters
) -> tuple[Study, dict[str, bytes]]:
    """The study, and every file by its name. Raises `SpecError`."""
    names = [one.experiment.name for one in carried]
    if len(set(names)) < len(names):
        raise SpecError(
            f"two experiments have one name: {', '.join(names)}: rename one, or pack two studies."
        )
    kept = [_kept(one) for one in carried]
    runs = {point.digest: point.spec for one in kept for point in one.points if point.spec}
    methods = methods_of(runs.values(), about.with_sources)
    found = _known(dict.fromkeys(name for one in kept for name in cluster_names(one.experiment)), clusters)
    places = cluster_files(found)
    files = dict(sources_of(methods))
    files |= {places[name]: clusters.text(cluster).encode() for name, cluster in found.items()}
    for one in kept:
        folder = f"experiments/{one.experiment.name}"
        for name, content in files_of(one.experiment, one.points, one.rows):
            files[f"{folder}/{name}"] = content.encode() if isinstance(content, str) else content
        files[f"{folder}/{RUNS}"] = _runs_text(one.points)
    study = Study(
        packed_on=about.packed_on,
        licence=about.licence,
        environment=dict(about.environment),
        experiments=tuple(map(_studied, kept)),
        methods=methods,
        models=tuple(_models(runs.values())),
        clusters=places,
        files={name: _stored(content) for name, content in sorted(files.items())},
    )
    crate = crate_of(study).encode()
    study = study.model_copy(update={"files": {CRATE: _stored(crate), **study.files}})
    manifest = json.dumps(study.model_dump(mode="json", exclude_defaults=False), indent=1, ensure_ascii=False)
    return study, {MANIFEST: f"{manifest}\n".encode(), CRATE: crate, **files}


def _kept(one: Carried) -> Carried:
    """The points with a result in some world, without what is of one machine only."""
    if not one.rows:
        raise SpecError(f"{one.experiment.name}: has no results: carry it out first.")
    names = own_paths(one.experiment)
    rows = [
        row.model_copy(
            update={
                "coordinates": without_own_paths(row.coordinates, names),
                "run": "",
                "stale": False,
                "sentence": without_folders(row.sentence),
            }
        )
        for row in one.rows
    ]
    known = {(_key(row.coordinates), row.seed) for row in rows}
    points = [
        point._replace(spec=without_places(point.spec) if point.spec else None, coordinates=place)
        for point in one.points
        if (_key(place := without_own_paths(point.coordinates, names)), point.seed) in known
    ]
    document = without_own_paths(one.experiment.model_dump(mode="json"), names)
    return Carried(Experiment.parse(document, one.experiment.name), points, rows)


def _key(coordinates: Mapping[str, object]) -> str:
    return json.dumps(coordinates, sort_keys=True)


def _studied(one: Carried) -> StudiedExperiment:
    return StudiedExperiment(
        name=one.experiment.name,
        title=one.experiment.title[:500],
        digest=digest_of(one.experiment),
        seeds=one.experiment.seeds,
        worlds=tuple(dict.fromkeys(row.world for row in one.rows)),
        points=len(one.points),
        results=len(one.rows),
    )


def _runs_text(points: Iterable[Point]) -> bytes:
    """Every run once, a line each, as servers and reports store it."""
    runs = {point.digest: point.spec for point in points if point.spec}
    lines = (json.dumps(to_document(run), separators=(",", ":"), ensure_ascii=False) for run in runs.values())
    return "".join(f"{line}\n" for line in lines).encode()


def _known(names: Iterable[str], clusters: Clusters) -> dict[str, ClusterSpec]:
    """Those that are still there: every run has its cluster itself."""
    found = {}
    for name in names:
        with suppress(SpecError):
            found[name] = clusters.named(name)
    return found


def cluster_files(names: Iterable[str]) -> dict[str, str]:
    """Where each cluster is in the study."""
    found: dict[str, str] = {}
    for name in sorted(names):
        plain = re.sub(r"[^A-Za-z0-9_-]+", "-", name).strip("-") or "cluster"
        files = (f"clusters/{plain}{f'-{number}' if number > 1 else ''}.toml" for number in count(1))
        found[name] = next(file for file in files if file not in found.values())
    return found


def cluster_names(experiment: Experiment) -> Iterator[str]:
    """The clusters that an experiment gives by name: in its base, and as levels of factors."""
    if isinstance(named := experiment.base.get(CLUSTER), str):
        yield named
    for factor in experiment.factors:
        for level in factor.values:
            given = [level.value] if CLUSTER in factor.paths else []
            yield from (one for one in (*given, level.set.get(CLUSTER)) if isinstance(one, str))


def _models(runs: Iterable[RunSpec]) -> Iterator[StudiedModel]:
    found: dict[tuple[str, Literal["random", "directory"], str, int], ModelSpec] = {}
    for run in runs:
        used = [(run.model, run.weights)]
        if run.model.draft is not None:
            used.append((run.model.draft, run.draft_weights))
        for model, weights in used:
            key = (model.name, weights.kind, weights.digest, num_parameters(model))
            found.setdefault(key, model)
    for (name, kind, digest, parameters), model in sorted(found.items(), key=lambda one: one[0]):
        size = model_bytes(model)
        yield StudiedModel(name=name, parameters=parameters, weights=kind, digest=digest, bytes=size)


def _stored(content: bytes) -> StoredFile:
    return StoredFile(bytes=len(content), sha256=hashlib.sha256(content).hexdigest())
