"""An experiment with what it names written out in it, for a machine that has not this, or has another of the
name: clusters, and recorded files of rates, of requests and of prompts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from engine.domain.cluster import ClusterSpec
from engine.domain.errors import SpecError
from engine.domain.experiment import Experiment
from engine.domain.values import Value
from engine.experiments.design.sources import Sources
from engine.recorded.files import parse_name, split_name
from engine.recorded.prompts import parse_prompts
from engine.recorded.requests import parse_requests
from engine.recorded.scenarios import AND, each_file, parse_file, together

CLUSTER, SCENARIO, TRACE, PROMPTS = "cluster", "scenario", "workload.trace", "workload.prompts"
RECORDED = (SCENARIO, TRACE, PROMPTS)
Write = Callable[[str], Any]
"""A name → what stands in its place, as plain data; the name itself, if it stays."""


def with_clusters(experiment: Experiment, clusters: Mapping[str, ClusterSpec]) -> Experiment:
    """The experiment with each of `clusters` in place of its name. Raises `SpecError`."""
    documents = {name: cluster.model_dump(mode="json") for name, cluster in clusters.items()}
    return written_out(experiment, {CLUSTER: lambda name: documents.get(name, name)})


def with_recorded(experiment: Experiment, sources: Sources) -> Experiment:
    """The experiment with what `sources` find in the recorded files that it names. Raises `SpecError`."""

    def scenario(name: str) -> Any:
        return sources.scenario(name).model_dump(mode="json") if is_file(name) else name

    return written_out(
        experiment,
        {
            SCENARIO: scenario,
            TRACE: lambda name: [_plain(row) for row in sources.requests(name)],
            PROMPTS: lambda name: [_plain(row) for row in sources.prompts(name)],
        },
    )


def with_texts(experiment: Experiment, texts: Mapping[str, str]) -> Experiment:
    """The experiment with these files, by their names without folders, in place of what it calls them. It is
    refused if it names others. Raises `SpecError`.
    """

    def text_of(path: Path) -> str:
        if path.name not in texts:
            sentence = f"The experiment names the recorded file {path.name[:60]}"
            raise SpecError(f"{sentence}: give it together with the experiment.", [("files", "missing")])
        return texts[path.name]

    def scenario(name: str) -> Any:
        if not is_file(name):
            return name
        parts = [split_name(part) for part in each_file(name)]
        found = (parse_file(text_of(path), path.name, link, options).changes for path, link, options in parts)
        return together(found).model_dump(mode="json")

    def trace(name: str) -> Any:
        path, _, options = split_name(name)
        found = parse_requests(text_of(path), path.name, options)
        return [_plain(row) for row in found.requests]

    def prompts(name: str) -> Any:
        path, _, options = split_name(name)
        return [_plain(row) for row in parse_prompts(text_of(path), path.name, options)]

    return written_out(experiment, {SCENARIO: scenario, TRACE: trace, PROMPTS: prompts})


def _plain(row: Value) -> dict[str, Any]:
    found: dict[str, Any] = row.model_dump(mode="json", exclude_none=True)
    return found


def is_file(scenario: str) -> bool:
    """Whether the name of a scenario is that of a file, which has an ending, not of an example trace."""
    return bool(split_name(scenario).path.suffix)


def without_folder(name: str) -> str:
    """The name of recorded files, each with its link and options, without their folders."""
    return AND.join(
        f"{file.path.name}{file.link and '@'}{file.link}{file.options and ','}{file.options}"
        for file in map(parse_name, each_file(name))
    )


def written_out(experiment: Experiment, writers: Mapping[str, Write]) -> Experiment:
    """The experiment with the names at the paths of `writers` replaced. Coordinates stay: a level keeps its
    value, and sets what it names besides. Raises `SpecError`.
    """
    document = experiment.model_dump(mode="json")
    for path, write in writers.items():
        document["base"] = _at(document["base"], path.split("."), write)
        for factor in document["factors"]:
            _in_factor(factor, path, write)
    found: Experiment = Experiment.parse(document, experiment.name)
    return found


def _in_factor(factor: dict[str, Any], path: str, write: Write) -> None:
    def written(at: str, value: Any) -> Any:
        """The value of the path `at`, which is `path` or above it."""
        return _at(value, path[len(at) + 1 :].split(".") if at != path else [], write)

    above = [at for at in factor["paths"] if f"{path}.".startswith(f"{at}.")]
    for level in factor["values"]:
        for at in above:
            value = level["set"].get(at, level["value"])
            if (found := written(at, value)) == value:
                continue
            if isinstance(value, dict) and len(factor["paths"]) == 1:  # no coordinate: its label is
                level["value"] = found
            else:
                level["set"][at] = found
    for level in factor["values"]:
        level["set"] = {
            at: written(at, value) if f"{path}.".startswith(f"{at}.") else value
            for at, value in level["set"].items()
        }


def _at(value: Any, names: list[str], write: Write) -> Any:
    """`value` with what is at `names` in it replaced, if that is a name."""
    if not names:
        return write(value) if isinstance(value, str) else value
    if isinstance(value, dict) and names[0] in value:
        return {**value, names[0]: _at(value[names[0]], names[1:], write)}
    return value
