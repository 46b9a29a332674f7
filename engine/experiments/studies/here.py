"""The runs of a study on this machine: with its own place of the weights, and with methods that it has."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from engine.domain.errors import SpecError
from engine.domain.spec import RunSpec, WeightsRef
from engine.experiments.design.sources import model_and_content
from engine.experiments.studies.study import StudiedMethod, Study
from engine.models.weights.manifest import manifest_of
from engine.strategies.registry import strategy_of


class Here(NamedTuple):
    """Runs that this machine can repeat, by digest, and why it cannot repeat the others, once each."""

    runs: Mapping[str, RunSpec]
    lacking: tuple[str, ...]


def runs_here(study: Study, folder: Path, runs: Mapping[str, RunSpec], models: Iterable[Path] = ()) -> Here:
    """`models` are directories in which to look for weights, besides where this machine has them."""
    given = {manifest_of(directory).digest: directory for directory in models}
    found: dict[str, RunSpec] = {}
    lacking: dict[str, None] = {}
    places: dict[tuple[str, WeightsRef], WeightsRef | str] = {}
    for digest, run in runs.items():
        method = _problem_of_method(study, folder, run)
        wanted = {"weights": (run.model.name, run.weights)}
        if run.model.draft is not None:
            wanted["draft_weights"] = run.model.draft.name, run.draft_weights
        for key in wanted.values():
            if key not in places:
                places[key] = _weights(*key, given)
        here = {field: places[key] for field, key in wanted.items()}
        problems = [one for one in (method, *here.values()) if one and isinstance(one, str)]
        if problems:
            lacking |= dict.fromkeys(problems)
        else:
            found[digest] = run.model_copy(update=here)
    return Here(found, tuple(lacking))


def _problem_of_method(study: Study, folder: Path, run: RunSpec) -> str:
    try:
        strategy_of(run)
    except SpecError:
        studied = next((one for one in study.methods if one.name == run.strategy), None)
        remedy = _remedy(studied, folder)
        return f"The method {run.strategy} is not here as the study has it ({run.method}): {remedy}"
    return ""


def _remedy(method: StudiedMethod | None, folder: Path) -> str:
    if method is None or method.origin is None:
        return "use the version of EdgeLoom that the study names."
    if not method.source:
        return "get it from those whose study it is, who may also pack it with --sources."
    place = folder / method.source
    read = "it is somebody's code, so read it first"
    if method.origin.file:
        return f"{read}, then repeat with --strategy {place}:{method.origin.attribute}"
    return f"{read}, then pip install {place}"


def _weights(name: str, wanted: WeightsRef, given: Mapping[str, Path]) -> WeightsRef | str:
    """Where this machine has the weights of a model of this name, or a sentence."""
    if not wanted.digest:
        return wanted
    if wanted.digest in given:
        return wanted.model_copy(update={"directory": str(given[wanted.digest])})
    try:
        _, own = model_and_content(name, "random" if wanted.kind == "random" else None)
    except SpecError:
        own = WeightsRef()
    if own.digest == wanted.digest:
        return own
    return (
        f"The model {name} with the digest {wanted.digest[:16]} is not here: give its directory with --model."
    )
