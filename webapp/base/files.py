"""Files that people send, each read in a process of its own with limits of time and memory.

Whatever a file does to its parser, the server goes on. Planning workers, which read tokenizers, and
emulations have limits of their own.
"""

from __future__ import annotations

from collections.abc import Mapping
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

import topologies
from engine.confined import Confined
from engine.domain.calibration import Calibration, parse_calibration
from engine.domain.cluster import ClusterSpec
from engine.domain.experiment import Experiment
from engine.domain.model import ModelSpec
from engine.domain.scenario import Scenario
from engine.domain.vision import VisionSpec
from engine.domain.workload import TracedRequest
from engine.experiments.design.files import parse_toml
from engine.experiments.design.written_out import with_texts
from engine.experiments.results.rows import Row
from engine.experiments.studies.archive import Limits, read_archive
from engine.experiments.studies.reading import parse_points
from engine.experiments.studies.study import POINTS, Study
from engine.models.inputs.pictures import encoded
from engine.models.weights.directory import read_spec
from engine.models.weights.headers import check_weights
from engine.recorded.prompts import parse_prompts
from engine.recorded.requests import Recorded, parse_requests
from engine.recorded.scenarios import names_links, parse_file
from topologies import foreign
from topologies.drawn import Drawn
from topologies.layout import CanvasLayout

STUDY_S, STUDY_MEMORY_BYTES = 30.0, 2 << 30
STUDY_LIMITS = Limits(files=2_000, bytes=500_000_000)
TEXT_S, TEXT_BYTES = 10.0, 1 << 30
PICTURE_S, PICTURE_BYTES = 10.0, 1 << 30
MODEL_S, MODEL_MEMORY_BYTES = 120.0, 2 << 30
"""A model's embeddings are read whole where the file has them twice."""


class ReadStudy(NamedTuple):
    """Experiments with their results, the clusters that they name, and what the study says of itself."""

    study: Study
    experiments: list[Experiment]
    clusters: dict[str, ClusterSpec]
    rows: list[list[Row]]
    """Of each experiment."""


def read_model(directory: Path, name: str) -> ModelSpec:
    """The model in a directory, all tensors of which are there. Raises `SpecError`, `HostError`."""
    return ModelSpec.model_validate(_MODEL(name, directory, name))


def read_picture(vision: VisionSpec, data: bytes, where: str) -> str:
    """A picture that a person sent, as `engine.models.inputs.pictures.encoded`. Raises `SpecError`,
    `HostError`.
    """
    return str(_PICTURE(where, vision, data, where))


def read_drawing(
    text: str, kind: topologies.Format | foreign.Kind, where: str, defaults: foreign.Defaults
) -> Drawn:
    """A cluster file, or the drawing of another program. Raises `SpecError`, `HostError`."""
    found = _DRAWING(where, text, kind, where, defaults)
    return Drawn(ClusterSpec.model_validate(found["spec"]), CanvasLayout.model_validate(found["layout"]))


def read_scenario(text: str, where: str, link: str, options: str) -> Scenario:
    """A scenario, or the rates of a link, as `engine.recorded.scenarios.parse_file`. Raises `SpecError`,
    `HostError`.
    """
    return Scenario.model_validate(_SCENARIO(where, text, where, link, options))


def read_requests(text: str, where: str, options: str) -> Recorded:
    """Requests, as `engine.recorded.requests.parse_requests`. Raises `SpecError`, `HostError`."""
    requests, notes = _REQUESTS(where, text, where, options)
    return Recorded(tuple(TracedRequest.model_validate(row) for row in requests), tuple(notes))


def read_study(data: bytes, where: str) -> ReadStudy:
    """The experiments in a study's archive, all digests of which are right. Raises `SpecError`,
    `HostError`.
    """
    found = _STUDY(where, data, where)
    clusters = {name: ClusterSpec.model_validate(one) for name, one in found["clusters"].items()}
    return ReadStudy(
        Study.model_validate(found["study"]),
        [Experiment.model_validate(one) for one in found["experiments"]],
        clusters,
        [[Row.model_validate(row) for row in rows] for rows in found["rows"]],
    )


def read_machine(document: dict[str, Any], where: str) -> Calibration:
    """What the calibration of another machine has written. Raises `SpecError`, `HostError`."""
    return Calibration.model_validate(_MACHINE(where, document, where))


def read_prompts(text: str, where: str, options: str) -> list[dict[str, Any]]:
    """Prompts, as `engine.recorded.prompts.parse_prompts`, as plain data. Raises `SpecError`, `HostError`."""
    found: list[dict[str, Any]] = _PROMPTS(where, text, where, options)
    return found


def read_experiment(text: str, where: str, recorded: Mapping[str, str]) -> Experiment:
    """An experiment in TOML, with the texts of the `recorded` files that it names written out in it. Raises
    `SpecError`, `HostError`.
    """
    return Experiment.model_validate(_EXPERIMENT(where, text, where, dict(recorded)))


# In the process of the call -----------------------------------------------------------------------
def _model(directory: Path, name: str) -> dict[str, Any]:
    spec = read_spec(directory, name)
    check_weights(directory, spec)
    return spec.model_dump(mode="json")


def _drawing(text: str, kind: Any, where: str, defaults: foreign.Defaults) -> dict[str, Any]:
    if kind in topologies.FORMATS:
        drawn = topologies.parse_drawing(text, where, kind, defaults)
    else:
        drawn = foreign.parse(text, kind, where, defaults)
    return {name: part.model_dump(mode="json") for name, part in drawn._asdict().items()}


def _scenario(text: str, where: str, link: str, options: str) -> dict[str, Any]:
    link = "" if names_links(text, where) else link
    return parse_file(text, where, link, options).model_dump(mode="json")


def _requests(text: str, where: str, options: str) -> tuple[list[dict[str, Any]], tuple[str, ...]]:
    found = parse_requests(text, where, options)
    return [request.model_dump(mode="json") for request in found.requests], found.notes


def _machine(document: dict[str, Any], where: str) -> dict[str, Any]:
    calibration: Calibration = Calibration.parse(document, where)
    # it must be readable again as a file: not too large
    return parse_calibration(calibration.to_json(), where).model_dump(mode="json")


def _prompts(text: str, where: str, options: str) -> list[dict[str, Any]]:
    return [prompt.model_dump(mode="json") for prompt in parse_prompts(text, where, options)]


def _experiment(text: str, where: str, recorded: dict[str, str]) -> dict[str, Any]:
    return with_texts(parse_toml(text, where), recorded).model_dump(mode="json")


def _study(data: bytes, where: str) -> dict[str, Any]:
    files: dict[str, list[bytes]] = {}

    def take(name: str, block: bytes) -> None:
        if name.endswith(f"/{POINTS}") or name.endswith(".toml"):
            files.setdefault(name, []).append(block)

    study = read_archive(BytesIO(data), where, take, STUDY_LIMITS)
    texts = {name: b"".join(blocks) for name, blocks in files.items()}
    experiments, every = [], []
    for one in study.experiments:
        experiment, rows = parse_points(
            texts.get(f"{one.folder}/{POINTS}", b""), f"{where}, {one.folder}/{POINTS}"
        )
        experiments.append(experiment.model_dump(mode="json"))
        every.append([row.model_dump(mode="json") for row in rows])
    clusters = {
        name: topologies.parse_toml(
            texts.get(file, b"").decode(errors="replace"), f"{where}, {file}"
        ).model_dump(mode="json")
        for name, file in study.clusters.items()
    }
    return {
        "study": study.model_dump(mode="json"),
        "experiments": experiments,
        "rows": every,
        "clusters": clusters,
    }


_STUDY = Confined(_study, STUDY_S, STUDY_MEMORY_BYTES)
_MODEL = Confined(_model, MODEL_S, MODEL_MEMORY_BYTES)
_PICTURE = Confined(encoded, PICTURE_S, PICTURE_BYTES, modules=("PIL.PngImagePlugin", "PIL.JpegImagePlugin"))
_DRAWING = Confined(_drawing, TEXT_S, TEXT_BYTES, modules=("networkx",))
_SCENARIO = Confined(_scenario, TEXT_S, TEXT_BYTES)
_MACHINE = Confined(_machine, TEXT_S, TEXT_BYTES)
_REQUESTS = Confined(_requests, TEXT_S, TEXT_BYTES)
_PROMPTS = Confined(_prompts, TEXT_S, TEXT_BYTES)
_EXPERIMENT = Confined(_experiment, TEXT_S, TEXT_BYTES)
