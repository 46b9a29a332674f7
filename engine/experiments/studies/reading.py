"""Reads a study that was unpacked: its files are checked again, and all in them is parsed as others' data."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from engine.domain.errors import HostError, SpecError
from engine.domain.experiment import Experiment
from engine.domain.spec import RunSpec, spec_digest
from engine.domain.stored import read_spec
from engine.experiments.presentation.origin import digest_of
from engine.experiments.results.rows import Row
from engine.experiments.studies.archive import parse_manifest
from engine.experiments.studies.study import MANIFEST, POINTS, RUNS, StudiedExperiment, Study
from engine.models.weights.manifest import stored_file

REPEATED = "repeated"
"""The folder in a study where its repetition is kept, which nobody packed."""


class Opened(NamedTuple):
    """An experiment of a study: `runs` by digest, and a row for each point and world."""

    experiment: Experiment
    runs: Mapping[str, RunSpec]
    rows: tuple[Row, ...]


def checked_study(folder: Path) -> Study:
    """The study in a folder, every file of which is what it says. Others may lie beside them: they are whose
    folder it is. Raises `SpecError`, `HostError`.
    """
    try:
        study = parse_manifest((folder / MANIFEST).read_bytes(), str(folder))
        for name, stored in study.files.items():
            if stored_file(folder / name) != stored:
                raise SpecError(f"{folder / name}: is not what {MANIFEST} says: it was changed since.")
    except OSError as error:
        where = error.filename or folder
        raise HostError(f"{where}: cannot be read: {error.strerror}: name a study's folder.") from error
    return study


def read_experiment(folder: Path, study: Study, studied: StudiedExperiment) -> Opened:
    """One experiment of a study that was checked. Raises `SpecError`."""
    points, runs_file = (f"{studied.folder}/{name}" for name in (POINTS, RUNS))
    for name in (points, runs_file):
        if name not in study.files:
            raise SpecError(f"{folder}: has no {name}: ask for the study again.")
    experiment, rows = parse_points((folder / points).read_bytes(), points)
    if digest_of(experiment) != studied.digest:
        raise SpecError(f"{studied.folder}: its experiment is another one than {MANIFEST} says.")
    runs = dict(_runs((folder / runs_file).read_bytes().splitlines(), runs_file))
    for row in rows:
        if row.digest and row.digest not in runs:
            raise SpecError(
                f"{studied.folder}: the run {row.digest[:12]} of a point is not in {RUNS}: ask for the study "
                "again."
            )
    return Opened(experiment, runs, rows)


def parse_points(text: bytes, where: str) -> tuple[Experiment, tuple[Row, ...]]:
    """Experiment and rows of an export as JSON (`engine/experiments/presentation/export.py`). Raises
    `SpecError`.
    """
    document = _json(text, where)
    if not isinstance(document, dict) or not isinstance(document.get("rows"), list):
        raise SpecError(f"{where}: expected an object with an experiment and its rows.")
    experiment: Experiment = Experiment.parse(document.get("experiment"), f"{where}, experiment")
    rows = tuple(Row.parse(row, f"{where}, rows[{index}]") for index, row in enumerate(document["rows"]))
    return experiment, rows


def _runs(lines: list[bytes], where: str) -> Iterator[tuple[str, RunSpec]]:
    for number, line in enumerate(lines, 1):
        document = _json(line, f"{where}, line {number}")
        if not isinstance(document, dict):
            raise SpecError(f"{where}, line {number}: expected a run.")
        run = read_spec(document, f"{where}, line {number}").needed()
        yield spec_digest(run), run


def _json(text: bytes, where: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise SpecError(f"{where}: no valid JSON: {error}.") from error
